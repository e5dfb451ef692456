"""jobs.report: a run's documents joined, and set beside the runs before it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests import past_runs
from tests.past_runs import (
    FIRST,
    SECOND,
    THIRD,
    begin,
    failed_run,
    forced,
    forget,
    project_run,
    step_run,
    two_runs,
)

from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.project import DOCUMENT, FOLDER
from tfdyno.jobs.project._report_documents import MOST_LINES
from tfdyno.jobs.project.report import MOST_RUNS, benches, compare_runs, report, tell
from tfdyno.jobs.project.runs import run_named
from tfdyno.store.project_history import ProjectHistory

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.project.report import ProjectReport, StepTold


def step_of(found: ProjectReport, name: str) -> StepTold:
    return next(one for one in found.told.steps if one.run.step == name)


def test_every_step_is_told_by_its_document(tmp_path: Path) -> None:
    found = report(two_runs(tmp_path))
    kinds = {one.run.step: one.kind for one in found.told.steps}
    assert kinds == {
        "choose": "advise", "estimate": "estimate", "train": "train", "speed": "bench",
        "look": "diagnose", "faster": "tune", "export": "export", "keep": "models",
        "phones": "edge",
        "size": "size", "load": "load",
    }  # fmt: skip
    assert all(one.state == "whole" and one.figures for one in found.told.steps)
    assert found.told.run.id == SECOND
    assert [one.run.id for one in found.history] == [SECOND, FIRST]


def test_only_what_was_made_anew_is_compared_and_a_bench_by_its_samples(tmp_path: Path) -> None:
    found = report(two_runs(tmp_path)).compared
    assert [(one.before, one.after) for one in found] == [(FIRST, SECOND)]
    assert [(one.step, one.what, one.after) for one in found[0].changes] == [
        ("speed", "option arguments", "--fast")
    ]
    assert {one.step for one in found[0].gained} == {"speed"}
    rate = next(one for one in found[0].gained if one.figure == "Throughput")
    assert rate.confidence_ratio == 0.99  # as tfdyno compare has it
    assert rate.interval[0] < rate.ratio < rate.interval[1]
    assert rate.verdict in ("better", "no_difference")


def test_every_speed_up_that_is_told_has_an_interval(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    later = [replace(step_run(name, version=4), status="finished") for name in past_runs.STEPS]
    for step in later:
        past_runs.put(history, step, past_runs.document(past_runs.STEPS[step.step][1]))
    history.write(project_run(THIRD, *later))
    found = report(history).compared[0].gained
    assert len(found) > 20
    for one in found:
        assert one.reason
        if one.verdict != "not_compared" and one.before.basis != "exact":
            assert 0 < one.interval[0] <= one.ratio <= one.interval[1]
            assert 0 < one.confidence_ratio < 1
        else:
            assert one.interval == (0.0, 0.0)


def test_a_named_run_and_the_one_to_compare_with_stand_alone(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    failed_run(history)
    found = report(history, run=SECOND[:11], against=FIRST)
    assert found.told.run.id == SECOND
    assert [(one.before, one.after) for one in found.compared] == [(FIRST, SECOND)]
    assert [one.run.id for one in report(history, run=THIRD, against=FIRST).history] == [
        THIRD, SECOND, FIRST,
    ]  # fmt: skip
    for run, against in ((FIRST, FIRST), (FIRST, SECOND)):
        with pytest.raises(UsageError, match=f"{against} is not older than {run}"):
            report(history, run=run, against=against)
    with pytest.raises(UsageError, match="there is no run nine"):
        report(history, against="nine")


def test_the_newest_runs_stand_side_by_side_and_an_older_one_that_is_asked_for(
    tmp_path: Path,
) -> None:
    history = ProjectHistory(folder=tmp_path / FOLDER)
    for number in range(9):
        history.write(replace(project_run(FIRST, step_run("train")), id=f"run-{number}"))
    found = report(history)
    assert [one.run.id for one in found.history] == [f"run-{n}" for n in range(8, 2, -1)]
    assert (found.run_count, len(found.compared)) == (9, MOST_RUNS - 1)
    asked = report(history, against="run-0")
    assert [one.run.id for one in asked.history] == [
        *(f"run-{n}" for n in range(8, 3, -1)), "run-0"
    ]  # fmt: skip


def test_another_project_in_the_same_folder_is_no_history_of_this_one(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    history.write(replace(project_run(THIRD, step_run("train")), project="other"))
    found = report(history)
    assert [one.run.id for one in found.history] == [THIRD]
    assert found.compared == ()
    between = compare_runs(history, run_named(history.runs(), SECOND), history.runs())
    assert (between.before, between.after) == (FIRST, SECOND)


def test_an_output_that_was_deleted_by_hand_is_gone_and_its_answer_is_kept(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    past_runs.remove(history, "load")
    (history.output(step_run("train")) / DOCUMENT).unlink()
    found = report(history)
    load, train = step_of(found, "load"), step_of(found, "train")
    assert (load.state, load.trouble) == ("gone", "its output was deleted")
    assert (train.state, train.trouble) == ("gone", "document.json was deleted")
    assert load.document == past_runs.document("load")
    assert train.figures
    forget(history, step_run("load"))
    assert step_of(report(history), "load").figures == ()


def test_a_run_that_forced_a_step_leaves_to_the_runs_before_what_they_measured(
    tmp_path: Path,
) -> None:
    history = two_runs(tmp_path)
    history.remove((SECOND,))
    forced(history, "speed", "bench-fast")
    there, here = (step_of(report(history, run=one), "speed") for one in (FIRST, THIRD))
    assert (there.state, there.trouble) == ("remade", "its output was made anew by a later run")
    assert there.document == past_runs.document("bench")
    assert here.document == past_runs.document("bench-fast")
    found = report(history).compared[0]
    assert [(one.step, one.what) for one in found.changes] == [("speed", "making")]
    assert [one.way for one in found.gained if one.figure == "Throughput"] == ["samples"]
    forget(history, step_run("speed"))
    assert step_of(report(history, run=FIRST), "speed").figures == ()
    assert report(history).compared[0].notes == (
        f"speed of {FIRST}: its output was made anew by a later run",
    )


def test_a_run_that_does_not_know_its_making_is_not_given_another_one(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    history.write(project_run(THIRD, replace(step_run("speed"), stamp="")))
    found = step_of(report(history), "speed")
    assert (found.state, found.figures) == ("unreadable", ())
    assert found.trouble == "which making of its output this run had is not known"


def test_a_run_that_failed_shows_nothing_that_another_try_made(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    failed = step_run("speed", status="failed", version=5, error="exit code 3")
    history.write(project_run(THIRD, failed, status="failed"))
    begin(history, failed, {"step.log": b"no data\n"})
    assert step_of(report(history), "speed").last_lines == ("no data",)
    retried = step_run("speed", version=5)
    past_runs.put(history, retried, past_runs.document("bench-fast"))
    history.write(project_run("20261124-070000-dddd", retried))
    first = step_of(report(history, run=THIRD), "speed")
    assert (first.state, first.figures, first.log) == ("none", (), "")
    found = report(history).compared
    assert [(one.before, {g.since for g in one.gained}) for one in found[:2]] == [
        (THIRD, {SECOND}), (SECOND, set()),
    ]  # fmt: skip


def test_a_forced_try_that_failed_does_not_show_the_answer_that_stands(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    history.write(project_run(THIRD, step_run("speed", status="failed"), status="failed"))
    found = step_of(report(history), "speed")
    assert (found.state, found.document, found.log) == ("none", {}, "")


def test_what_an_earlier_try_began_is_not_shown_as_the_log_of_one_that_began_nothing(
    tmp_path: Path,
) -> None:
    history = two_runs(tmp_path)
    failed = step_run("speed", status="failed", version=5)
    begin(history, failed, {"step.log": b"of an earlier try"})
    later = replace(failed, started_at="2026-11-24T06:00:00+00:00")
    history.write(project_run(THIRD, later, status="failed"))
    assert step_of(report(history), "speed").last_lines == ()


def test_a_run_between_that_failed_or_did_other_steps_hides_no_gain(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    history.remove((SECOND,))
    failed = step_run("speed", status="failed", version=9, rests_on={"option arguments": "--oops"})
    history.write(project_run(SECOND, failed, status="failed"))
    history.write(project_run(THIRD, step_run("choose", status="reused")))
    fast = step_run("speed", version=2, rests_on={"option arguments": "--fast"})
    past_runs.put(history, fast, past_runs.document("bench-fast"))
    history.write(project_run("20261124-070000-dddd", fast))
    newest, _, oldest = report(history).compared
    assert {(one.step, one.since) for one in newest.gained} == {("speed", FIRST)}
    assert [(one.what, one.after, one.since) for one in newest.changes] == [
        ("option arguments", "--fast", FIRST)
    ]
    assert [(one.what, one.after, one.since) for one in oldest.changes] == [
        ("option arguments", "--oops", "")
    ]
    assert oldest.gained == ()
    runs = history.runs()
    named = compare_runs(history, runs[0], runs, run_named(runs, SECOND))
    assert (named.before, named.gained, named.changes) == (SECOND, newest.gained, newest.changes)


def test_a_step_that_a_run_was_not_asked_for_is_neither_new_nor_gone(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    fast = step_run("speed", status="reused", version=2, rests_on={"option arguments": "--fast"})
    history.write(project_run(THIRD, fast))
    assert report(history).compared[0].changes == ()
    every = [fast if name == "speed" else step_run(name, status="reused")
             for name in past_runs.STEPS]  # fmt: skip
    history.write(project_run("20261124-070000-dddd", *every, step_run("more")))
    assert [(one.step, one.what) for one in report(history).compared[0].changes] == [
        ("more", "step")
    ]


@pytest.mark.parametrize(
    ("content", "trouble"),
    [
        ("{", "document.json is not valid JSON"),
        ("[1, 2]", "document.json holds no object"),
        ("", "document.json is not valid JSON"),
    ],
)
def test_a_document_that_cannot_be_read_is_said_so(
    tmp_path: Path, content: str, trouble: str
) -> None:
    history = two_runs(tmp_path)
    forget(history, step_run("export"))
    (history.output(step_run("export")) / DOCUMENT).write_text(content)
    step = step_of(report(history), "export")
    assert step.state == "unreadable"
    assert step.trouble.startswith(trouble)


def test_a_bench_of_another_version_keeps_its_figures_and_is_not_compared(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    path = history.output(step_run("speed", version=2)) / DOCUMENT
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": "tfdyno bench 9"}))
    found = report(history)
    assert step_of(found, "speed").figures
    assert benches(found.told) == {}
    rate = next(one for one in found.compared[0].gained if one.figure == "Throughput")
    assert rate.way == "intervals"
    assert rate.caveat == "what the machine did between the two is not taken out"


def test_both_sides_of_a_bench_are_read_back(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    document = past_runs.document("bench") | {"against": past_runs.document("bench-fast")}
    past_runs.put(history, step_run("speed", version=2), document)
    told, comparison = benches(report(history).told)["speed"]
    assert len(told) == 2
    assert comparison is not None
    alone, none = benches(tell(history, run_named(history.runs(), FIRST), history.runs()))["speed"]
    assert (len(alone), none) == (1, None)


def test_a_step_that_failed_or_was_not_reached_has_no_document(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    failed_run(history)
    found = report(history)
    assert [(one.run.step, one.state, one.reached) for one in found.told.steps] == [
        ("choose", "whole", True), ("train", "none", True), ("speed", "none", False),
        ("export", "none", False),
    ]  # fmt: skip
    assert found.compared[0].gained == ()


def test_what_a_run_was_asked_for_and_did_not_come_to_is_not_reached_or_to_come(
    tmp_path: Path,
) -> None:
    history = two_runs(tmp_path)
    (tmp_path / "project.toml").write_text('[steps.unasked]\ncommand = "train"\n')
    failed = step_run("train", status="failed")
    history.write(project_run(THIRD, failed, status="failed", asked=("export", "new")))
    told = report(history).told.steps
    assert [(one.run.step, one.run.command, one.run.status, one.reached) for one in told] == [
        ("train", "train", "failed", True), ("export", "export", "stopped", False),
        ("new", "", "stopped", False),
    ]  # fmt: skip
    at_work = project_run(THIRD, step_run("train", status="running"), status="running",
                          asked=("export",))  # fmt: skip
    assert [(one.run.status, one.reached) for one in tell(history, at_work, (at_work,)).steps] == [
        ("running", True), ("running", False),
    ]  # fmt: skip
    unknown = replace(at_work, chosen=())  # of a run that did not tell
    assert len(tell(history, unknown, (unknown,)).steps) == 1


@pytest.mark.parametrize(("printed", "state"), [("whole", "whole"), ("half", "none")])
def test_a_gate_that_was_not_passed_shows_what_it_judged(
    tmp_path: Path, printed: str, state: str
) -> None:
    history = two_runs(tmp_path)
    step = step_run("export", status="failed", version=3, error="exit code 1")
    raw = json.dumps(failed_export())
    begin(history, step, {"answer.json": (raw if printed == "whole" else raw[:99]).encode()})
    history.write(project_run(THIRD, step, status="failed"))
    found = step_of(report(history), "export")
    assert found.state == state
    assert bool(found.figures) is (printed == "whole")


def failed_export() -> dict[str, object]:
    raw = past_runs.document("export")
    raw["formats"][1] |= {"failures": ["accuracy falls by 2.00 points"], "kept": False}
    return raw


def test_a_step_is_told_with_what_has_changed_since_it_was_last_looked_at(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    speed = step_of(report(history), "speed")
    assert [one.what for one in speed.changed] == ["option arguments"]
    assert speed.before == "finished"
    assert report(history, run=FIRST).told.steps[0].before == ""


def test_a_step_that_failed_shows_the_end_of_its_log(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    failed = failed_run(history).steps[1]
    assert step_of(report(history), "train").log == ""  # it has none
    lines = [*(f"line {n}" for n in range(2000)), "a\rb\r  1 of 2", "\x00\xff\x1b[31mred\x1b[0m"]
    begin(history, failed, {"step.log": "\n".join(lines).encode("latin1")})
    told = step_of(report(history), "train")
    assert told.log == f"{failed.output}.part/step.log"
    assert len(told.last_lines) == MOST_LINES
    assert told.last_lines[-3:] == ("line 1999", "  1 of 2", "\ufffdred")
