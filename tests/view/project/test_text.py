"""view.project_text: a project's answer on a terminal of 80 columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests import past_runs
from tests.past_runs import FIRST, SECOND, THIRD, failed_run, project_run, step_run, two_runs

from tfdyno.core.project.report import Removal
from tfdyno.jobs.project.report import compare_runs, report, tell
from tfdyno.jobs.project.runs import run_named, runs_of
from tfdyno.view.project.text import compared_text, removal_text, report_text, run_text, runs_text

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.store.project_history import ProjectHistory


@pytest.fixture
def history(tmp_path: Path) -> ProjectHistory:
    return two_runs(tmp_path)


def test_the_answer_comes_before_the_steps_and_the_history(history: ProjectHistory) -> None:
    text = report_text(report(history))
    places = [text.index(part) for part in (
        f"shapes, run {SECOND}", "All 11 steps are done, 10 of them reused", "choose: Advised:",
        "key figure", f"From {FIRST} to {SECOND}", "changed   speed: option arguments is new",
        "gained    speed: Throughput:")]  # fmt: skip
    assert places == sorted(places)
    assert max(map(len, text.splitlines())) <= 80


def test_commands_stand_in_the_table_where_there_is_room(history: ProjectHistory) -> None:
    wide = report_text(report(history), width=120)
    assert "advise --scenario serve" in wide
    assert "advise --scenario serve" not in report_text(report(history), width=80)


def test_what_failed_and_what_was_not_reached_stand_plainly(history: ProjectHistory) -> None:
    failed_run(history)
    text = report_text(report(history), colour=True)
    assert "\x1b[31mfailed\x1b[0m" in text
    assert text.count("not reached") == 3  # a sentence, and two rows
    assert "! train: Exit code 3: out of memory." in text


def test_an_only_run_has_nothing_to_compare_with(history: ProjectHistory) -> None:
    history.remove((SECOND,))
    assert report_text(report(history)).endswith(
        "It is the project's only run: there is nothing to compare with."
    )


def test_runs_are_listed_newest_first_with_their_steps(history: ProjectHistory) -> None:
    failed_run(history)
    lines = runs_text(runs_of(history), width=100).splitlines()
    assert lines[0].split() == ["run", "when", "(UTC)", "done", "reused", "failed", "steps", "took"]
    newest = [THIRD, "2026-11-24", "06:00", "failed", "0", "1", "1", "4", "12.5", "s"]
    assert lines[1].split() == newest
    assert lines[3].split()[:5] == [FIRST, "2026-11-24", "04:00", "done", "11"]
    assert max(map(len, runs_text(runs_of(history)).splitlines())) <= 80


def test_projects_that_share_a_folder_are_told_apart(history: ProjectHistory) -> None:
    mixed = [*runs_of(history), replace(project_run(FIRST), project="other")]
    assert "project" in runs_text(mixed).splitlines()[0]
    assert "other" in runs_text(mixed).splitlines()[-1]


def test_a_run_shows_why_where_and_what_of_every_step(history: ProjectHistory) -> None:
    failed = failed_run(history)
    past_runs.remove(history, "choose")
    text = run_text(tell(history, failed, history.runs()))
    assert "outputs/choose-163686f6f7365000 (its output was deleted)" in text
    assert "why      nothing that it rests on has changed" in text
    assert "error    exit code 3: out of memory" in text
    assert "why      the run did not come to it" in text
    assert "command  tfdyno train shapes.py" in text


def test_an_output_that_is_anothers_by_now_is_said_beside_its_name(history: ProjectHistory) -> None:
    past_runs.forced(history, "speed", "bench-fast")
    text = run_text(tell(history, run_named(history.runs(), FIRST), history.runs()), width=200)
    assert "(its output was made anew by a later run)" in text
    assert "found    It trains" in text


def test_a_long_name_leaves_room_for_what_was_found(history: ProjectHistory) -> None:
    long = replace(step_run("speed"), step=f"speed-{'of-the-largest-model-' * 4}")
    past_runs.put(history, long, past_runs.document("bench"))
    history.write(project_run(THIRD, long))
    (row,) = [line for line in report_text(report(history)).splitlines() if "done  " in line]
    assert row.startswith("speed-of-the-larges…  done")
    assert "throughput: 167 samples/s" in row


def test_a_comparison_of_a_run_with_itself_finds_nothing(history: ProjectHistory) -> None:
    one = run_named(history.runs(), FIRST)
    assert compared_text(compare_runs(history, one, history.runs(), one)).splitlines()[1:] == [
        "  changed   nothing that a step rests on has changed"
    ]


def test_what_is_removed_is_told_with_what_stays() -> None:
    runs = (project_run(FIRST),)
    found = Removal(runs=runs, outputs=("outputs/a",), kept_outputs=("outputs/b", "outputs/c"),
                    freed_bytes=2048, left=("outputs/a: Permission denied",))  # fmt: skip
    assert removal_text(found, removed=False).splitlines() == [
        "Would remove 1 run and 1 output, 2 KiB; 2 outputs of theirs stay, which other",
        "runs name.", f"  {FIRST}  2026-11-24 04:00, finished", "! outputs/a: Permission denied",
    ]  # fmt: skip
    unnamed = Removal(runs=(), outputs=(), kept_outputs=(), unnamed=("outputs/x",), freed_bytes=7)
    assert removal_text(unnamed, removed=True).splitlines() == [
        "Removed 1 output that no run names, 7 B.", "  outputs/x  no run names it",
    ]  # fmt: skip
    none = Removal(runs=(), outputs=(), kept_outputs=(), freed_bytes=0)
    assert removal_text(none, removed=True) == "There is no run to remove."
