"""model.run_gain: what changed between two runs, and what the same figure of both says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measurements import measurement

from tfdyno.core.project import ProjectRun, RunStatus, StepRun
from tfdyno.core.project_report import Change, KeyFigure
from tfdyno.model.run_gain import changes, gained, gained_bench, step_changes

TEXTS = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["", "1", "2"]))
RATE = KeyFigure(name="throughput", title="Throughput", value=100.0, unit="samples/s", low=90.0,
                 high=110.0, confidence_ratio=0.95, better="more", place="desk")  # fmt: skip
TIME = replace(RATE, name="step", title="Step", unit="s", better="less")
POSITIVE = st.floats(1e-6, 1e6)


def step(rests_on: dict[str, str], name: str = "train") -> StepRun:
    return StepRun(step=name, command="train", key="k", rests_on=rests_on)


def run(*steps: StepRun, status: RunStatus = "finished") -> ProjectRun:
    return ProjectRun(id="r", project="p", status=status, steps=steps)


def figure(like: KeyFigure, bounds: tuple[float, float, float]) -> KeyFigure:
    low, value, high = sorted(bounds)
    return replace(like, low=low, value=value, high=high)


@given(TEXTS, TEXTS)
def test_the_changes_lead_from_one_to_the_other_and_name_nothing_that_is_equal(
    before: dict[str, str], after: dict[str, str]
) -> None:
    found = step_changes(step(before), step(after))
    left = dict(before)
    for one in found:
        assert before.get(one.what, "") == one.before
        if one.what in after:
            left[one.what] = one.after
        else:
            del left[one.what]
    assert left == after
    assert len({one.what for one in found}) == len(found)
    assert not [
        one for one in found if one.what in before and before[one.what] == after.get(one.what)
    ]


@given(TEXTS)
def test_a_run_has_not_changed_from_itself(rests_on: dict[str, str]) -> None:
    assert changes(run(step(rests_on)), run(step(rests_on))) == ()


def test_a_step_that_came_or_went_is_one_change_and_one_not_reached_is_none() -> None:
    before = run(step({"option epochs": "5"}), step({"a": "1"}, "gone"), step({"a": "1"}, "last"))
    waiting = StepRun(step="last", command="train", status="stopped")
    after = run(step({"option epochs": "6"}), waiting, step({"a": "1"}, "new"))
    assert changes(before, after) == (
        Change(step="train", what="option epochs", before="5", after="6"),
        Change(step="gone", what="step", before="train"),
        Change(step="new", what="step", after="train"),
    )


def test_a_step_that_a_run_did_not_come_to_has_not_gone() -> None:
    whole, part = run(step({}), step({}, "last")), run(step({}), status="failed")
    assert changes(whole, part) == ()
    assert changes(part, whole) == ()
    assert [one.step for one in changes(whole, run(step({})))] == ["last"]


@pytest.mark.parametrize(
    ("before", "after", "ratio", "interval", "verdict"),
    [
        # 200/100; 180/110 to 220/90
        (RATE, replace(RATE, value=200.0, low=180.0, high=220.0), 2.0, (1.6364, 2.4444), "better"),
        (RATE, RATE, 1.0, (0.8182, 1.2222), "no_difference"),
        (RATE, replace(RATE, value=50.0, low=45.0, high=55.0), 0.5, (0.4091, 0.6111), "worse"),
        # of times the shorter is better: 100/50; 90/55 to 110/45
        (TIME, replace(TIME, value=50.0, low=45.0, high=55.0), 2.0, (1.6364, 2.4444), "better"),
    ],
)
def test_the_ratio_matches_the_hand_calculation(
    before: KeyFigure, after: KeyFigure, ratio: float, interval: tuple[float, float], verdict: str
) -> None:
    found = gained("speed", before, after)
    assert found.ratio == pytest.approx(ratio)
    assert found.interval == pytest.approx(interval, abs=1e-4)
    assert found.confidence_ratio == pytest.approx(0.90)  # 0.95 + 0.95 - 1
    assert found.verdict == verdict


@given(*[st.tuples(POSITIVE, POSITIVE, POSITIVE)] * 2, st.sampled_from([RATE, TIME]))
def test_an_interval_holds_its_ratio_and_turns_over_with_the_runs(
    one: tuple[float, float, float], other: tuple[float, float, float], like: KeyFigure
) -> None:
    a, b = figure(like, one), figure(like, other)
    there, back = gained("s", a, b), gained("s", b, a)
    low, high = there.interval
    assert low <= there.ratio * (1 + 1e-9)
    assert there.ratio <= high * (1 + 1e-9)
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert back.interval == pytest.approx((1 / high, 1 / low))
    if there.verdict == "better":
        assert low > 1
        assert back.verdict in ("worse", "no_difference")  # an effect of 1 % is not symmetric


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (replace(RATE, low=None, high=None), "no interval is known"),
        (replace(RATE, place="cloud"), "measured on desk and cloud"),
        (replace(RATE, place=""), "measured on desk and an unknown machine"),
        (replace(RATE, basis="estimated"), "an estimate, not a measurement"),
        (replace(RATE, value=0.0, low=0.0), "one of them is not above 0"),
        (replace(RATE, low=0.0), "no interval is known"),
        (replace(RATE, better=""), "neither more nor less of it is better"),
    ],
)
def test_what_does_not_compare_says_why_and_has_no_ratio(after: KeyFigure, why: str) -> None:
    found = gained("speed", RATE, after)
    assert (found.verdict, found.ratio, found.interval) == ("not_compared", 0.0, (0.0, 0.0))
    assert found.reason == why


def test_a_size_is_counted_and_needs_no_interval() -> None:
    size = KeyFigure(name="size", title="Size", value=40.0, unit="bytes", basis="exact",
                     better="less")  # fmt: skip
    found = gained("export", size, replace(size, value=10.0))
    assert (found.ratio, found.verdict, found.confidence_ratio) == (4.0, "better", 0.0)
    assert gained("export", size, size).verdict == "no_difference"


def test_two_benches_are_judged_by_their_samples() -> None:
    a, b = (measurement([[s * f] * 9 for f in (1.0, 1.01, 0.99)]) for s in (1.0, 0.5))
    found = gained_bench("speed", (RATE, RATE), (a, b))
    assert found.ratio == pytest.approx(2.0, rel=0.01)
    assert found.interval[0] > 1.9
    assert (found.verdict, found.confidence_ratio) == ("better", 0.99)
    other = replace(b, task=replace(b.task, title="another"))
    refused = gained_bench("speed", (RATE, RATE), (a, other))
    assert (refused.verdict, refused.ratio) == ("not_compared", 0.0)
    assert refused.reason.startswith("task.title differs")
