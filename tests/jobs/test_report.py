"""jobs.report: a run's documents joined, and set beside the runs before it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests import past_runs
from tests.past_runs import FIRST, SECOND, THIRD, failed_run, project_run, step_run, two_runs

from tfdyno.core.errors import UsageError
from tfdyno.core.project import DOCUMENT, FOLDER
from tfdyno.jobs.report import MOST_LINES, MOST_RUNS, benches, compared, report, run_before, tell
from tfdyno.jobs.runs import runs_of
from tfdyno.store.project_history import ProjectHistory

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.project_report import ProjectReport, StepTold


def step_of(found: ProjectReport, name: str) -> StepTold:
    return next(one for one in found.told.steps if one.run.step == name)


def test_every_step_is_told_by_its_document(tmp_path: Path) -> None:
    found = report(two_runs(tmp_path))
    kinds = {one.run.step: one.kind for one in found.told.steps}
    assert kinds == {
        "choose": "advise", "estimate": "estimate", "train": "train", "speed": "bench",
        "look": "diagnose", "export": "export", "keep": "models", "phones": "edge",
        "size": "size", "load": "load",
    }  # fmt: skip
    assert all(one.state == "whole" and one.figures for one in found.told.steps)
    assert found.told.run.id == SECOND
    assert [one.run.id for one in found.history] == [FIRST, SECOND]


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
        FIRST, SECOND, THIRD,
    ]  # fmt: skip
    assert report(history, run=FIRST, against=FIRST).compared == ()
    with pytest.raises(UsageError, match="there is no run nine"):
        report(history, against="nine")


def test_the_newest_runs_stand_side_by_side_and_an_older_one_that_is_asked_for(
    tmp_path: Path,
) -> None:
    history = ProjectHistory(folder=tmp_path / FOLDER)
    for number in range(9):
        history.write(replace(project_run(FIRST, step_run("train")), id=f"run-{number}"))
    found = report(history)
    assert [one.run.id for one in found.history] == [f"run-{n}" for n in range(3, 9)]
    assert (found.run_count, len(found.compared)) == (9, MOST_RUNS - 1)
    asked = report(history, against="run-0")
    assert [one.run.id for one in asked.history] == ["run-0", *(f"run-{n}" for n in range(4, 9))]


def test_another_project_in_the_same_folder_is_no_history_of_this_one(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    history.write(replace(project_run(THIRD, step_run("train")), project="other"))
    found = report(history)
    assert [one.run.id for one in found.history] == [THIRD]
    assert found.compared == ()
    assert run_before(runs_of(history), history.run(SECOND)) == history.run(FIRST)


def test_an_output_that_was_deleted_by_hand_is_shown_as_gone(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    past_runs.remove(history, "load")
    (history.output(step_run("train")) / DOCUMENT).unlink()
    found = report(history)
    load, train = step_of(found, "load"), step_of(found, "train")
    assert (load.state, load.trouble, load.figures) == ("gone", "its output was deleted", ())
    assert (train.state, train.trouble) == ("gone", "document.json was deleted")


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
    assert "from the intervals of both" in rate.reason


def test_both_sides_of_a_bench_are_read_back(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    document = past_runs.document("bench") | {"against": past_runs.document("bench-fast")}
    past_runs.put(history, step_run("speed", version=2), document)
    told, comparison = benches(report(history).told)["speed"]
    assert len(told) == 2
    assert comparison is not None
    alone, none = benches(tell(history, history.run(FIRST)))["speed"]
    assert (len(alone), none) == (1, None)


def test_a_step_that_failed_or_was_not_reached_has_no_document(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    failed_run(history)
    found = report(history)
    assert [(one.run.step, one.state, one.reached) for one in found.told.steps] == [
        ("choose", "whole", True), ("train", "none", True), ("speed", "none", False),
        ("export", "none", False),
    ]  # fmt: skip
    before, after = (tell(history, history.run(one)) for one in (SECOND, THIRD))
    assert [one.step for one in compared(before, after).gained] == []


def test_what_the_file_names_and_a_failed_run_did_not_come_to_is_not_reached(
    tmp_path: Path,
) -> None:
    history = two_runs(tmp_path)
    history.write(project_run(THIRD, step_run("train", status="failed"), status="failed"))
    assert [one.run.step for one in report(history).told.steps] == ["train"]
    steps = '[steps.train]\ncommand = "train"\n[steps.later]\ncommand = "export"\n'
    (tmp_path / "project.toml").write_text(f'[project]\nname = "shapes"\n{steps}')
    told = report(history).told.steps
    assert [(one.run.step, one.run.command, one.reached) for one in told] == [
        ("train", "train", True), ("later", "export", False),
    ]  # fmt: skip
    assert len(report(history, run=SECOND).told.steps) == 10  # a whole run came to all
    (tmp_path / "project.toml").write_text("[steps\n")
    assert len(report(history).told.steps) == 1
    (tmp_path / "project.toml").write_text(steps)
    history.write(replace(history.run(SECOND), id="20261124-070000-dddd"))
    assert len(report(history, run=THIRD).told.steps) == 1  # the file may have been another then


@pytest.mark.parametrize(("printed", "state"), [("whole", "whole"), ("half", "none")])
def test_a_gate_that_was_not_passed_shows_what_it_judged(
    tmp_path: Path, printed: str, state: str
) -> None:
    history = two_runs(tmp_path)
    step = step_run("export", status="failed", version=3, error="exit code 1")
    raw = json.dumps(failed_export())
    part = history.output(step).with_name(f"{history.output(step).name}.part")
    part.mkdir()
    (part / "answer.json").write_text(raw if printed == "whole" else raw[:99])
    history.write(project_run(THIRD, step, status="failed"))
    found = step_of(report(history), "export")
    assert found.state == state
    assert bool(found.figures) is (printed == "whole")


def failed_export() -> dict[str, object]:
    raw = past_runs.document("export")
    raw["formats"][1] |= {"failures": ["accuracy falls by 2.00 points"], "kept": False}
    return raw


def test_a_step_is_told_with_what_has_changed_since_the_run_before(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    first, second = history.run(FIRST), history.run(SECOND)
    speed = next(s for s in tell(history, second, first).steps if s.run.step == "speed")
    assert [one.what for one in speed.changed] == ["option arguments"]
    assert speed.before == "finished"
    assert tell(history, first).steps[0].before == ""


def test_a_step_that_failed_shows_the_end_of_its_log(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    failed = failed_run(history).steps[1]
    assert step_of(report(history), "train").log == ""  # it has none
    part = history.output(failed).with_name(f"{history.output(failed).name}.part")
    part.mkdir()
    lines = [*(f"line {n}" for n in range(2000)), "a\rb\r  1 of 2", "\x00\xff\x1b[31mred\x1b[0m"]
    (part / "step.log").write_bytes("\n".join(lines).encode("latin1"))
    told = step_of(report(history), "train")
    assert told.log == f"{failed.output}.part/step.log"
    assert len(told.last_lines) == MOST_LINES
    assert told.last_lines[-3:] == ("line 1999", "  1 of 2", "\ufffdred")
