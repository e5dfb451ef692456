"""words/project/report: figures, changes and gains in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.past_runs import FIRST, project_run, step_run

from tfdyno.core.project.report import Change, Gained, KeyFigure, RunTold, StepTold
from tfdyno.model.choose.run_gain import gained
from tfdyno.words.project.report import (
    basis_words,
    change_words,
    changes_words,
    duration_words,
    error_words,
    figure_words,
    gained_words,
    run_sentence,
    status_words,
    step_count,
    step_counts,
    titled_words,
    verdict_words,
    why_words,
)

RATE = KeyFigure(name="throughput", title="Throughput", value=165.0, unit="samples/s", low=155.0,
                 high=182.0, confidence_ratio=0.95, better="more", place="desk")  # fmt: skip
DIGEST, OTHER = "ab" * 32, "cd" * 32


def told(*steps: StepTold, status: str = "finished") -> RunTold:
    run = project_run(FIRST, *(one.run for one in steps), status=status)
    return RunTold(run=run, steps=steps)


def step(name: str, status: str = "finished") -> StepTold:
    return StepTold(run=step_run(name, status=status))


def to_come(name: str) -> StepTold:
    return StepTold(run=replace(step_run(name, status="waiting"), status="running"))


@pytest.mark.parametrize(
    ("unit", "bounds", "more", "words"),
    [
        ("samples/s", (155, 165, 182), {}, "165 samples/s (155–182, 95 %)"),
        ("s", (0.151, 0.167, 0.182), {}, "167 ms (151–182, 95 %)"),
        ("h", (5.4, 6.7, 8.4), {"basis": "estimated"}, "6.7 h (5.4–8.4 h, 9 in 10)"),
        ("usd", (4.3, 5.4, 6.7), {"basis": "estimated"}, "$5.40 ($4.30–6.70, 9 in 10)"),
        ("bytes", (2**30, 2**31, 3 * 2**30), {}, "2 GiB (1–3 GiB, 95 %)"),
        ("times", (1.19, 1.24, 1.3), {}, "1.24x (1.19–1.30, 95 %)"),
        ("ratio", (0.9, 0.914, 0.93), {}, "91.4 % (90–93 %, 95 %)"),
    ],
)
def test_a_figure_has_its_unit_once_and_its_interval(
    unit: str, bounds: tuple[float, float, float], more: dict[str, str], words: str
) -> None:
    low, value, high = bounds
    one = replace(RATE, unit=unit, low=low, value=value, high=high, **more)  # type: ignore[arg-type]
    assert figure_words(one) == words


def test_a_figure_says_what_it_is_and_what_it_rests_on() -> None:
    assert titled_words(replace(RATE, of="onnx")) == (
        "throughput, onnx: 165 samples/s (155–182, 95 %)"
    )
    assert figure_words(replace(RATE, low=None, high=None)) == "165 samples/s"
    assert basis_words(RATE) == "measured on desk"
    assert basis_words(replace(RATE, place="")) == "measured"
    assert basis_words(replace(RATE, terms="64 clients")) == "measured on desk; 64 clients"
    assert basis_words(replace(RATE, basis="estimated")) == "estimated"
    assert basis_words(replace(RATE, basis="exact")) == "counted"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Change(step="a", what="option epochs", before="5", after="6"), "option epochs: 5 → 6"),
        (Change(step="a", what="file t.py", before=DIGEST, after=OTHER), "file t.py has changed"),
        (Change(step="a", what="file t.py", after=DIGEST), "file t.py is new"),
        (Change(step="a", what="option x", after="7"), "option x is new (7)"),
        (Change(step="a", what="option x", before="7"), "option x is gone (7)"),
        (Change(step="a", what="step", after="train"), "ran for the first time"),
        (
            Change(step="a", what="making", before="s1", after="s2"),
            "was made again, though nothing that it rests on has changed",
        ),
        (
            Change(step="a", what="option x", before="1", after="2", since=FIRST),
            f"option x: 1 → 2 (since {FIRST})",
        ),
        (Change(step="a", what="tfdyno", before="0.1", after="0.2"), "tfdyno: 0.1 → 0.2"),
    ],
)
def test_a_change_is_one_phrase(change: Change, words: str) -> None:
    assert change_words(change) == words


def test_what_changed_for_many_steps_stands_once() -> None:
    names = ("a", "b", "c")
    found = [Change(step=one, what="tfdyno", before="0.1", after="0.2") for one in names]
    found += [Change(step=one, what="making", before="x", after="y") for one in "de"]
    found += [replace(found[0], step="f", since=FIRST)]
    assert changes_words(found) == [
        ("a, b and c", "tfdyno: 0.1 → 0.2"),
        ("d and e", "were made again, though nothing that they rest on has changed"),
        ("f", f"tfdyno: 0.1 → 0.2 (since {FIRST})"),
    ]


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (
            {"verdict": "better", "ratio": 1.24, "interval": (1.19, 1.3), "confidence_ratio": 0.99},
            "Throughput: 165 samples/s → 205 samples/s; better, 1.24x (1.19–1.30, 99 %)",
        ),
        (
            {
                "verdict": "better",
                "ratio": 1.24,
                "interval": (1.19, 1.3),
                "confidence_ratio": 0.9,
                "reason": "from the intervals of both",
                "caveat": "what the machine did is in it",
                "way": "intervals",
                "since": FIRST,
            },
            "Throughput: 165 samples/s → 205 samples/s; better, 1.24x (1.19–1.30, 90 %); what the "
            f"machine did is in it (since {FIRST})",
        ),
        (
            {"verdict": "not_compared", "reason": "no interval is known"},
            "Throughput: 165 samples/s → 205 samples/s; not compared: no interval is known",
        ),
    ],
)
def test_a_gain_has_its_interval_or_says_why_there_is_none(
    gain: dict[str, object], words: str
) -> None:
    after = replace(RATE, value=205.0, low=190.0, high=210.0)
    one = Gained(step="s", figure="Throughput", before=RATE, after=after, **gain)  # type: ignore[arg-type]
    assert gained_words(one) == words


@pytest.mark.parametrize(
    ("after", "words"), [(20.0, "Size: 40 B → 20 B (−50%)"), (40.0, "Size: 40 B → 40 B; unchanged")]
)
def test_a_size_has_its_change_in_percent(after: float, words: str) -> None:
    size = replace(RATE, title="Size", value=40.0, unit="bytes", basis="exact", low=None, high=None)
    one = Gained(step="s", figure="Size", before=size, after=replace(size, value=after),
                 verdict="better", ratio=2.0, way="counts")  # fmt: skip
    assert gained_words(one) == words


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (told(step("a"), step("b")), "All 2 steps are done."),
        (told(step("a"), step("b", "reused")),
         "All 2 steps are done, 1 of them reused from an earlier run."),
        (told(step("a", "reused"), step("b", "reused")),
         "All 2 steps are done, all of them reused from an earlier run."),
        (told(step("a")), "The one step is done."),
        (told(step("a", "reused")), "The one step is done, reused from an earlier run."),
        (told(), "The run has no steps."),
        (told(step("a"), step("b", "failed"), step("c", "waiting"), step("d", "waiting")),
         "1 of 4 steps is done; b failed; c and d were not reached."),
        (told(step("a", "stopped")), "0 of 1 step are done; a was stopped."),
        (told(step("a"), step("b", "running"), to_come("c"), status="running"),
         "The run is going on: 1 of 3 steps is done so far."),
    ],
)  # fmt: skip
def test_how_far_a_run_came_is_one_sentence(run: RunTold, sentence: str) -> None:
    assert run_sentence(run) == sentence


def test_a_run_has_the_steps_that_it_was_asked_for() -> None:
    run = project_run(FIRST, step_run("a"), step_run("b"), asked=("c",))
    assert step_count(run) == 3
    assert step_count(replace(run, chosen=())) == 2  # of a run that did not tell


def test_a_step_that_was_not_reached_has_a_status_of_its_own() -> None:
    assert status_words(to_come("a")) == "to come"
    assert why_words(to_come("a")) == "the run has not come to it yet"
    found = ("finished", "reused", "stopped", "waiting")
    words = ["done", "reused", "stopped", "not reached"]
    assert [status_words(step("a", one)) for one in found] == words


def test_why_a_step_was_made_is_told() -> None:
    made = step("a")
    assert why_words(step("a", "waiting")) == "the run did not come to it"
    assert why_words(step("a", "reused")) == "nothing that it rests on has changed"
    assert why_words(made) == "there was nothing to reuse"
    assert why_words(replace(made, before="failed")) == "in the run before it failed"
    changed = (Change(step="a", what="option epochs", before="5", after="6"),)
    assert why_words(replace(made, before="finished", changed=changed)) == "option epochs: 5 → 6"


def test_an_error_is_a_sentence_and_counts_and_times_add_up() -> None:
    failed = StepTold(run=step_run("a", status="failed", error="exit code 3: out of memory"))
    assert error_words(failed) == "Exit code 3: out of memory."
    gone = replace(step("a"), trouble="its output was deleted")
    assert error_words(gone) == "Its output was deleted."
    run = project_run(FIRST, step_run("a"), step_run("b", status="reused"), failed.run)
    assert step_counts(run) == (1, 1, 1)
    assert duration_words(run) == "25.0 s"


def test_a_verdict_alone_is_what_follows_the_two_figures() -> None:
    size = KeyFigure(name="size", title="Size", value=100.0, basis="exact", better="less")
    smaller = gained("export", size, replace(size, value=88.0))
    assert verdict_words(smaller) == "−12%"
    assert verdict_words(gained("export", size, size)) == "unchanged"
    estimated = replace(size, basis="estimated")
    assert verdict_words(gained("export", estimated, size)).startswith("not compared: an estimate")
