"""jobs.runs: finding a project's runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.past_runs import FIRST, SECOND, THIRD, failed_run, project_run, step_run, two_runs

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.lock import lock_folder
from tfdyno.core.project.project import LOCK, ProjectRun
from tfdyno.jobs.project.runs import history_at, run_named, runs_of
from tfdyno.jobs.project.runs_removal import chosen, remove

if TYPE_CHECKING:
    from pathlib import Path

RUNS = tuple(ProjectRun(id=one, project="p") for one in ("b2-cc", "b1-bb", "a1-aa"))


def test_a_project_is_found_by_its_file_its_folder_and_its_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = two_runs(tmp_path)
    file = tmp_path / "project.toml"
    file.write_text('project.name = "shapes"\nsteps.a.command = "doctor"\n')
    for place in (file, tmp_path, history.folder, str(tmp_path)):
        assert history_at(place).runs() == history.runs()
    monkeypatch.chdir(tmp_path)
    assert history_at(None).runs() == history.runs()
    with pytest.raises(
        UsageError, match=r"there is no .*projct\.toml; did you mean .*project\.toml\?"
    ):
        history_at(tmp_path / "projct.toml")


def test_a_file_that_is_named_stands_for_its_own_project_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = two_runs(tmp_path)
    history.write(replace(project_run(THIRD, step_run("train")), project="beta"))
    own, other, unnamed = (tmp_path / f"{name}.toml" for name in ("project", "other", "third"))
    own.write_text('[project]\nname = "shapes"\n[steps.a]\n')
    other.write_text('project.name = "beta"\nsteps.a.command = "doctor"\n')
    unnamed.write_text('steps.a.command = "doctor"\n')
    assert [one.id for one in runs_of(history_at(own))] == [SECOND, FIRST]
    assert [one.id for one in runs_of(history_at(other))] == [THIRD]
    assert [one.id for one in runs_of(history_at(tmp_path))] == [THIRD, SECOND, FIRST]
    monkeypatch.chdir(tmp_path)
    assert len(runs_of(history_at(None))) == 2
    own.write_text("[steps")  # while it is edited, the runs are there all the same
    assert len(runs_of(history_at(None))) == 3
    why = f"holds no runs of {tmp_path.name}-third: those in it are of beta, shapes; name "
    with pytest.raises(UsageError, match=why):
        runs_of(history_at(unnamed))


def test_a_project_without_a_name_finds_its_runs_when_its_folder_is_called_otherwise(
    tmp_path: Path,
) -> None:
    two_runs(tmp_path / "new")
    file = tmp_path / "new" / "project.toml"
    file.write_text('steps.a.command = "doctor"\n')
    assert [one.id for one in runs_of(history_at(file))] == [SECOND, FIRST]
    assert remove(history_at(file), lambda runs: chosen(runs, (), 0), dry=True).runs == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [("import keras", "is not valid TOML"), ("", "is no project: it has no tables"),
     ("steps = 1", "is no project"), ("project.name = 1\n[steps.a]", "is no text")],
)  # fmt: skip
def test_a_file_that_is_no_project_is_refused(tmp_path: Path, text: str, why: str) -> None:
    two_runs(tmp_path)
    file = tmp_path / "train.py"
    file.write_text(text)
    with pytest.raises(UsageError, match=why):
        history_at(file)


def test_a_name_that_no_file_can_have_is_no_defect(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no .*a…: File name too long"):
        history_at("a" * 300)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_history_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no runs; tfdyno run project\.toml makes one"):
        runs_of(history_at(tmp_path))
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


def test_a_run_whose_process_is_gone_shows_as_stopped(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    steps = (step_run("choose", status="reused"), step_run("train", status="running"))
    history.write(project_run(THIRD, *steps, status="running"))
    newest = runs_of(history)[0]
    assert newest.status == "stopped"
    assert [one.status for one in newest.steps] == ["reused", "stopped"]
    lock = lock_folder(history.folder, LOCK)
    try:
        assert runs_of(history)[0].status == "running"
        first = run_named(history.runs(), FIRST)
        history.write(replace(first, status="running"))  # killed long ago
        assert [one.status for one in runs_of(history)] == ["running", "finished", "stopped"]
    finally:
        lock.close()


def test_a_failed_run_is_listed_like_any_other(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    failed = failed_run(history)
    assert [one.id for one in runs_of(history)] == [THIRD, SECOND, FIRST]
    assert runs_of(history)[0] == failed
