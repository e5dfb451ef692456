"""model.run_gain: what changed between two runs, and what the same figure of both says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measurements import measurement

from tfdyno.core.project.project import ProjectRun, StepRun
from tfdyno.core.project.report import Change, KeyFigure
from tfdyno.model.choose.run_gain import bases, changes, gained, gained_bench, step_changes

TEXTS = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["", "1", "2"]))
RATE = KeyFigure(name="throughput", title="Throughput", value=100.0, unit="samples/s", low=90.0,
                 high=110.0, confidence_ratio=0.95, better="more", place="desk")  # fmt: skip
TIME = replace(RATE, name="step", title="Step", unit="s", better="less")
POSITIVE = st.floats(1e-6, 1e6)


def step(rests_on: dict[str, str], name: str = "train") -> StepRun:
    return StepRun(step=name, command="train", status="finished", key="k", rests_on=rests_on)


def run(*steps: StepRun) -> ProjectRun:
    return ProjectRun(id="r", project="p", status="finished", steps=steps)


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
    one = run(step(rests_on))
    assert changes(bases([one]), one, {"train"}) == ()


def test_a_step_is_compared_with_the_newest_run_in_which_it_came_to_its_end() -> None:
    first = replace(run(step({"a": "1"}), step({"a": "1"}, "other")), id="first")
    failed = replace(run(replace(step({"a": "2"}), status="failed"), step({"a": "2"}, "other")),
                     id="failed")  # fmt: skip
    found = bases([failed, first])
    assert {name: since for name, (since, _) in found.items()} == {
        "train": "first", "other": "failed",
    }  # fmt: skip
    after = run(step({"a": "3"}), step({"a": "2"}, "other"))
    assert changes(found, after, {"train", "other"}) == (
        Change(step="train", what="a", before="1", after="3", since="first"),
    )


def test_only_a_step_that_no_run_knew_is_new_and_one_that_is_not_asked_for_is_nothing() -> None:
    before = bases([run(step({"option epochs": "5"}), step({"a": "1"}, "unasked"))])
    waiting = StepRun(step="last", command="train", status="stopped")
    after = run(step({"option epochs": "6"}), waiting, step({}, "new"), step({}, "tried"),
                replace(step({}, "of a run that was removed"), status="reused"))  # fmt: skip
    assert changes(before, after, {"train", "unasked", "tried"}) == (
        Change(step="train", what="option epochs", before="5", after="6", since="r"),
        Change(step="new", what="step", after="train"),
    )


def test_what_was_made_again_from_the_same_is_a_change_and_what_was_reused_is_none() -> None:
    first, again = (replace(step({"a": "1"}), stamp=stamp) for stamp in ("s1", "s2"))
    assert step_changes(first, again) == (
        Change(step="train", what="making", before="s1", after="s2"),
    )
    assert step_changes(first, replace(first, status="reused")) == ()
    assert step_changes(first, replace(again, stamp="")) == ()  # it failed


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
    assert found.way == "intervals"
    assert found.caveat == "what the machine did between the two is not taken out"


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
        (replace(RATE, terms="64 clients"), "measured with what is not known and 64 clients"),
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
    few = gained_bench("speed", (RATE, RATE), (a, replace(b, runs=b.runs[:2])))
    assert few.reason == "the later has 2 of 2 runs with a steady state; a comparison needs 3"


def test_two_benches_of_two_machines_are_not_compared_whatever_their_samples_say() -> None:
    a, b = (measurement([[s * f] * 9 for f in (1.0, 1.01, 0.99)]) for s in (1.0, 0.5))
    there = replace(RATE, place="cloud, 8 CPUs")
    found = gained_bench("speed", (replace(RATE, place="cloud, 4 CPUs"), there), (a, b))
    assert (found.verdict, found.ratio, found.way) == ("not_compared", 0.0, "")
    assert found.reason == "measured on cloud, 4 CPUs and cloud, 8 CPUs"
    assert gained_bench("speed", (there, there), (a, b)).way == "samples"
