"""jobs.runs_removal: forgetting runs, whenever that is killed."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.past_runs import (
    FIRST,
    SECOND,
    THIRD,
    begin,
    failed_run,
    project_run,
    put,
    step_run,
    two_runs,
)

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.lock import lock_folder
from tfdyno.core.project.output import FILE as MADE
from tfdyno.core.project.project import DOCUMENT, FOLDER, LOCK, OUTPUTS, ProjectRun
from tfdyno.jobs.project.runs import run_named
from tfdyno.jobs.project.runs_removal import TRASH, chosen, remove
from tfdyno.store.project_history import ProjectHistory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

RUNS = tuple(ProjectRun(id=one, project="p") for one in ("b2-cc", "b1-bb", "a1-aa"))


def outputs(history: ProjectHistory) -> set[str]:
    return {one.name for one in (history.folder / OUTPUTS).iterdir()}


def test_what_goes_is_named_or_what_stays_is_counted() -> None:
    assert chosen(RUNS, ("a", "b1"), None) == ("b1-bb", "a1-aa")
    assert chosen(RUNS, (), 1) == ("b1-bb", "a1-aa")
    assert chosen(RUNS, (), 0) == ("b2-cc", "b1-bb", "a1-aa")
    assert chosen(RUNS, (), 9) == ()
    others = tuple(ProjectRun(id=one, project="other") for one in ("o2", "o1"))
    assert chosen((*others, *RUNS), (), 1) == ("o1", "b1-bb", "a1-aa")  # of each project
    for ids, keep in (((), None), (("a",), 1)):
        with pytest.raises(UsageError, match="say which runs go"):
            chosen(RUNS, ids, keep)


def test_outputs_that_another_run_names_stay(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    before = outputs(history)
    planned = remove(history, lambda _runs: (FIRST,), dry=True)
    assert outputs(history) == before
    assert len(history.runs()) == 2
    done = remove(history, lambda _runs: (FIRST,))
    assert done == planned
    gone = history.output(step_run("speed")).name
    assert done.outputs == (f"{OUTPUTS}/{gone}",)
    assert done.freed_bytes > 1000
    assert len(done.kept_outputs) == 10
    assert outputs(history) == before - {gone}
    assert [one.id for one in history.runs()] == [SECOND]
    remove(history, lambda runs: chosen(runs, (), 0))
    assert outputs(history) == set()
    assert history.runs() == ()


def test_a_removal_while_a_run_goes_on_is_refused(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    before, lock = outputs(history), lock_folder(history.folder, LOCK)
    try:
        with pytest.raises(UsageError, match="in use by another run"):
            remove(history, lambda _runs: (FIRST,))
    finally:
        lock.close()
    assert len(history.runs()) == 2
    assert outputs(history) == before


def test_an_output_that_was_deleted_by_hand_or_leads_elsewhere_is_no_obstacle(
    tmp_path: Path,
) -> None:
    history = two_runs(tmp_path)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years")
    linked = history.output(step_run("load"))
    shutil.rmtree(linked)
    linked.symlink_to(mine)
    shutil.rmtree(history.output(step_run("train")))
    outside = replace(step_run("edited"), output=f"{OUTPUTS}/../../mine")
    history.write(project_run(THIRD, outside))
    found = remove(history, lambda runs: chosen(runs, (), 0))
    assert found.left == ()
    assert outputs(history) == set()
    assert (mine / "thesis.txt").read_text() == "years"


def test_what_cannot_be_deleted_is_told_and_goes_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = two_runs(tmp_path)

    def refuse(path: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("tfdyno.jobs.project.runs_removal.shutil.rmtree", refuse)
        found = remove(history, lambda _runs: (FIRST,))
    assert [one.partition(": ")[2] for one in found.left] == ["Permission denied"]
    assert any(one.startswith(TRASH) for one in outputs(history))
    remove(history, lambda _runs: ())
    assert not any(one.startswith(TRASH) for one in outputs(history))


KILLED = """
import os, shutil, sys
from pathlib import Path
from tfdyno.jobs.project import runs_removal as runs
from tfdyno.store.project_history import ProjectHistory
left = int(sys.argv[2])
def dying(function):
    def call(*words, **more):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return function(*words, **more)
    return call
for owner, names in ((ProjectHistory, ["remove"]), (Path, ["rename", "unlink"]),
                     (os, ["unlink", "rmdir"])):
    for name in names:
        setattr(owner, name, dying(getattr(owner, name)))
runs.remove(ProjectHistory(folder=Path(sys.argv[1])), lambda all: runs.chosen(all, (), 1))
"""
"""Ends itself without a word at the n-th call that changes anything."""


@pytest.mark.parametrize("calls", [0, 1, 2, 3, 4, 5, 7])
def test_a_kill_leaves_no_half_output_under_a_whole_name(tmp_path: Path, calls: int) -> None:
    history = ProjectHistory(folder=tmp_path / FOLDER)
    for name in (FIRST, SECOND, THIRD):
        step = step_run("train", version=int(name[10]))
        put(history, step, {"n": name})
        history.write(project_run(name, step, step_run("shared")))
    put(history, step_run("shared"), {})
    command = [sys.executable, "-c", KILLED, str(history.folder), str(calls)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode in (0, 9), done.stderr
    for folder in (history.folder / OUTPUTS).iterdir():
        if not folder.name.startswith(TRASH):
            assert {one.name for one in folder.iterdir()} == {DOCUMENT, MADE, "step.log"}
    for run in history.runs():  # every run that is still there has all that it names
        assert all(history.output(step).is_dir() for step in run.steps)
    remove(history, lambda runs: chosen(runs, (), 1))
    kept = {history.output(step).name for step in run_named(history.runs(), THIRD).steps}
    assert outputs(history) == kept
    assert [one.id for one in history.runs()] == [THIRD]


@given(st.lists(st.sets(st.sampled_from("abcd"), min_size=1), min_size=1, max_size=5), st.data())
def test_whatever_goes_every_output_of_a_run_that_stays_is_there(
    tmp_path_factory: pytest.TempPathFactory, named: Sequence[set[str]], data: st.DataObject
) -> None:
    history = ProjectHistory(folder=tmp_path_factory.mktemp("p") / FOLDER)
    for number, steps in enumerate(named):
        found = [step_run(one) for one in sorted(steps)]
        for step in found:
            put(history, step, {})
        history.write(replace(project_run(FIRST, *found), id=f"run-{number}"))
    ids = data.draw(st.sets(st.sampled_from([one.id for one in history.runs()])))
    remove(history, lambda _runs: tuple(ids))
    assert {one.id for one in history.runs()} == {f"run-{n}" for n in range(len(named))} - ids
    wanted = {history.output(step).name for run in history.runs() for step in run.steps}
    assert outputs(history) == wanted


def test_what_a_run_began_goes_with_it_and_stays_with_another(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    failed = failed_run(history)
    begun = begin(history, failed.steps[1], {"step.log": b"x" * 5000})
    stopped = project_run("20261124-030000-0000", step_run("load", status="stopped"))
    history.write(stopped)
    other = begin(history, stopped.steps[0], {})
    mine = history.folder / OUTPUTS / "notes"
    mine.mkdir()
    planned = remove(history, lambda _runs: (THIRD,), dry=True)
    assert planned.outputs == (f"{OUTPUTS}/{begun.name}",)
    assert planned.freed_bytes > 5000
    assert remove(history, lambda _runs: (THIRD,)) == planned
    assert not begun.exists()
    assert other.exists()
    assert mine.exists()  # no output of a step


def test_outputs_that_no_run_names_are_told_before_they_go(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    every = outputs(history)
    begun = begin(history, step_run("load"), {})  # beside what the runs have whole
    trash = history.folder / OUTPUTS / f"{TRASH}train-0123456789abcdef"
    trash.mkdir()
    history.path.rename(tmp_path / "elsewhere.sqlite")
    with pytest.raises(UsageError, match="holds no runs"):
        remove(history, lambda _runs: ())
    history.write(project_run(THIRD, step_run("train", status="reused")))
    train = history.output(step_run("train")).name
    planned = remove(history, lambda runs: chosen(runs, (), 9), dry=True)
    assert {one.partition("/")[2] for one in planned.unnamed} == every - {train} | {begun.name}
    assert planned.freed_bytes > 10_000
    assert (planned.runs, planned.outputs) == ((), ())
    assert remove(history, lambda runs: chosen(runs, (), 9)) == planned
    assert outputs(history) == {train}


def test_after_the_last_run_what_is_left_can_still_go(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    history.remove((FIRST, SECOND))  # killed before any output was renamed
    found = remove(history, lambda runs: chosen(runs, (), 0))
    assert (len(found.unnamed), found.runs) == (12, ())
    assert outputs(history) == set()


def test_a_removal_is_of_the_named_project_and_leaves_what_others_need(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    shared = replace(project_run(THIRD, step_run("train", status="reused")), project="beta")
    history.write(shared)
    beta = replace(history, project="beta")
    assert [one.id for one in remove(beta, lambda runs: chosen(runs, (), 0)).runs] == [THIRD]
    assert history.output(step_run("train")).is_dir()
    assert len(history.runs()) == 2


@pytest.mark.parametrize("column", ["{", b"\xff\xfe", '{"step": 3}'])
@pytest.mark.parametrize("table", ["run", "step"])
def test_a_damaged_run_is_named_and_can_be_forgotten(
    tmp_path: Path, table: str, column: str | bytes
) -> None:
    history = two_runs(tmp_path)
    where = "id" if table == "run" else "run"
    with sqlite3.connect(history.path) as database:
        database.execute(f"UPDATE {table} SET noun = ? WHERE {where} = ?", (column, FIRST))
    with pytest.raises(
        UsageError, match=f"run {FIRST} in .* cannot be read: .*runs rm {FIRST} --project /"
    ):
        history.runs()
    with pytest.raises(UsageError, match=f"run {FIRST} cannot be read"):
        remove(history, lambda _runs: (SECOND,))
    assert [one.id for one in remove(history, lambda runs: chosen(runs, (FIRST,), None)).runs] == [
        FIRST
    ]
    assert [one.id for one in history.runs()] == [SECOND]
