"""jobs.runs: finding a project's runs, and forgetting some of them, whenever that is killed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.past_runs import FIRST, SECOND, THIRD, failed_run, project_run, put, step_run, two_runs

from tfdyno.core.errors import UsageError
from tfdyno.core.folder_lock import FolderLock
from tfdyno.core.project import DOCUMENT, FOLDER, LOCK, OUTPUTS, ProjectRun
from tfdyno.jobs.runs import TRASH, chosen, history_at, remove, run_named, runs_of
from tfdyno.store.project_history import ProjectHistory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

RUNS = tuple(ProjectRun(id=one, project="p") for one in ("b2-cc", "b1-bb", "a1-aa"))


def outputs(history: ProjectHistory) -> set[str]:
    return {one.name for one in (history.folder / OUTPUTS).iterdir()}


def test_a_project_is_found_by_its_file_its_folder_and_its_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = two_runs(tmp_path)
    file = tmp_path / "project.toml"
    file.write_text("")
    for place in (file, tmp_path, history.folder, str(tmp_path)):
        assert history_at(place).runs() == history.runs()
    monkeypatch.chdir(tmp_path)
    assert history_at(None).runs() == history.runs()
    with pytest.raises(
        UsageError, match=r"there is no .*projct\.toml; did you mean .*project\.toml\?"
    ):
        history_at(tmp_path / "projct.toml")


def test_a_folder_without_a_history_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no runs; tfdyno run project\.toml makes one"):
        runs_of(history_at(tmp_path))
    with pytest.raises(UsageError, match="holds no runs"):
        remove(history_at(tmp_path), lambda _runs: ())
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_named_by_the_beginning_of_its_id() -> None:
    assert run_named(RUNS, "a").id == "a1-aa"
    assert run_named(RUNS, "").id == "b2-cc"
    with pytest.raises(UsageError, match="b is the beginning of several runs: b2-cc, b1-bb; give"):
        run_named(RUNS, "b")
    with pytest.raises(UsageError, match=r"there is no run b1-bc; did you mean b1-bb\?"):
        run_named(RUNS, "b1-bc")
    with pytest.raises(UsageError, match="there is no run zzz; tfdyno runs list names them"):
        run_named(RUNS, "zzz")
    longer = (*RUNS, ProjectRun(id="a1-aa-2", project="p"))
    assert run_named(longer, "a1-aa").id == "a1-aa"  # a whole id is no mere beginning


def test_what_goes_is_named_or_what_stays_is_counted() -> None:
    assert chosen(RUNS, ("a", "b1"), None) == ("b1-bb", "a1-aa")
    assert chosen(RUNS, (), 1) == ("b1-bb", "a1-aa")
    assert chosen(RUNS, (), 0) == ("b2-cc", "b1-bb", "a1-aa")
    assert chosen(RUNS, (), 9) == ()
    for ids, keep in (((), None), (("a",), 1)):
        with pytest.raises(UsageError, match="say which runs go"):
            chosen(RUNS, ids, keep)


def test_a_run_whose_process_is_gone_shows_as_stopped(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    steps = (step_run("choose", status="reused"), step_run("train", status="running"))
    history.write(project_run(THIRD, *steps, status="running"))
    newest = runs_of(history)[0]
    assert newest.status == "stopped"
    assert [one.status for one in newest.steps] == ["reused", "stopped"]
    lock = FolderLock(history.folder, LOCK)
    try:
        assert runs_of(history)[0].status == "running"
        history.write(replace(history.run(FIRST), status="running"))  # killed long ago
        assert [one.status for one in runs_of(history)] == ["running", "finished", "stopped"]
    finally:
        lock.close()


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
    assert len(done.kept_outputs) == 9
    assert outputs(history) == before - {gone}
    assert [one.id for one in history.runs()] == [SECOND]
    remove(history, lambda runs: chosen(runs, (), 0))
    assert outputs(history) == set()
    assert history.runs() == ()


def test_a_removal_while_a_run_goes_on_is_refused(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    before, lock = outputs(history), FolderLock(history.folder, LOCK)
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
        patch.setattr("tfdyno.jobs.runs.shutil.rmtree", refuse)
        found = remove(history, lambda _runs: (FIRST,))
    assert [one.partition(": ")[2] for one in found.left] == ["Permission denied"]
    assert any(one.startswith(TRASH) for one in outputs(history))
    remove(history, lambda _runs: ())
    assert not any(one.startswith(TRASH) for one in outputs(history))


KILLED = """
import os, shutil, sys
from pathlib import Path
from tfdyno.jobs import runs
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
            assert {one.name for one in folder.iterdir()} == {DOCUMENT, "step.log"}
    for run in history.runs():  # every run that is still there has all that it names
        assert all(history.output(step).is_dir() for step in run.steps)
    remove(history, lambda runs: chosen(runs, (), 1))
    kept = {history.output(step).name for step in history.run(THIRD).steps}
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
    begun = history.output(failed.steps[1]).with_name(f"{failed.steps[1].output[8:]}.part")
    begun.mkdir()
    other = history.output(step_run("load")).with_name(f"{step_run('load').output[8:]}.part")
    other.mkdir()
    mine = history.folder / OUTPUTS / "notes"
    mine.mkdir()
    remove(history, lambda _runs: (THIRD,))
    assert not begun.exists()
    assert other.exists()
    assert mine.exists()  # no output of a step


def test_a_failed_run_is_listed_like_any_other(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    failed = failed_run(history)
    assert [one.id for one in runs_of(history)] == [THIRD, SECOND, FIRST]
    assert runs_of(history)[0] == failed
