"""``tfdyno runs`` end to end: list, show, compare, remove."""

from __future__ import annotations

import io
import json
import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.past_runs import FIRST, SECOND, THIRD, failed_run, project_run, step_run, two_runs

from tfdyno.cli.main import main
from tfdyno.core.base.lock import lock_folder
from tfdyno.core.project.project import LOCK

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.base.untyped import Value
    from tfdyno.store.project_history import ProjectHistory


@pytest.fixture(autouse=True)
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectHistory:
    monkeypatch.chdir(tmp_path)
    return two_runs(tmp_path)


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> Value:
    capsys.readouterr()
    assert main(["runs", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["runs", *words]) == 2
    return capsys.readouterr().err


def test_runs_are_listed_and_shown(
    history: ProjectHistory, capsys: pytest.CaptureFixture[str]
) -> None:
    failed_run(history)
    assert main(["runs", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [THIRD, SECOND, FIRST]
    assert main(["runs", "show"]) == 0
    assert capsys.readouterr().out.startswith(THIRD)
    assert main(["runs", "show", FIRST]) == 0
    assert "why      there was nothing to reuse" in capsys.readouterr().out
    assert [one["id"] for one in answer(capsys, "list")["runs"]] == [THIRD, SECOND, FIRST]
    assert answer(capsys, "show", SECOND)["steps"][0]["status"] == "reused"


def test_the_newest_run_is_compared_with_the_one_before_it_unless_others_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    named = answer(capsys, "compare", FIRST, SECOND)
    assert answer(capsys, "compare") == answer(capsys, "compare", FIRST) == named
    assert main(["runs", "rm", FIRST, "--yes"]) == 0
    said = refused(capsys, "compare")
    assert said == f"tfdyno: {SECOND} is the first run of its project; name two runs.\n"


def test_two_runs_are_compared_in_either_order(capsys: pytest.CaptureFixture[str]) -> None:
    there = answer(capsys, "compare", FIRST, SECOND)["gained"][0]
    back = answer(capsys, "compare", SECOND, FIRST)["gained"][0]
    assert there["ratio"] * back["ratio"] == pytest.approx(1.0)
    assert main(["runs", "compare", FIRST, SECOND]) == 0
    assert "speed: option arguments is new (--fast)" in capsys.readouterr().out


def test_a_removal_is_said_first_and_needs_a_word(
    history: ProjectHistory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", "rm", FIRST, "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("Would remove 1 run and 1 output")
    assert "nothing was removed; add --yes to remove it" in refused(capsys, "rm", FIRST)
    assert len(history.runs()) == 2
    assert answer(capsys, "rm", "--keep", "1", "--dry-run")["removed"] is False
    assert main(["runs", "rm", "--keep", "1", "--yes"]) == 0
    assert capsys.readouterr().out.startswith("Removed 1 run and 1 output")
    assert [one.id for one in history.runs()] == [SECOND]
    assert answer(capsys, "rm", SECOND, "--yes")["runs"][0]["id"] == SECOND
    assert "holds no runs" in refused(capsys, "list")
    assert main(["runs", "rm", "--keep", "1"]) == 0
    assert capsys.readouterr().out == "There is no run to remove.\n"


def test_outputs_that_no_run_names_need_a_word_as_well(
    history: ProjectHistory, capsys: pytest.CaptureFixture[str]
) -> None:
    history.remove((SECOND,))
    assert "add --yes" in refused(capsys, "rm", "--keep", "9")
    assert (history.output(step_run("speed", version=2))).is_dir()
    found = answer(capsys, "rm", "--keep", "9", "--yes")
    assert found["unnamed"] == [step_run("speed", version=2).output]
    assert found["freed_bytes"] > 1000


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Who sits at the terminal, and what is typed there."""
    typed = io.StringIO()
    typed.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdin", typed)
    return typed


def test_who_says_no_is_told_so_and_who_says_yes_gets_the_answer_alone_on_stdout(
    history: ProjectHistory, capsys: pytest.CaptureFixture[str], person: io.StringIO
) -> None:
    person.write("n\ny\n")
    person.seek(0)
    assert main(["runs", "rm", FIRST]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("Would remove 1 run and 1 output")
    assert said.err.endswith("Nothing was removed.\n")
    assert len(history.runs()) == 2
    assert main(["runs", "rm", FIRST, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] is True
    assert len(history.runs()) == 1


def test_json_without_a_word_of_anybody_removes_nothing_and_prints_nothing(
    history: ProjectHistory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", "rm", FIRST, "--json"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.endswith("tfdyno: nothing was removed; add --yes to remove it.\n")
    assert len(history.runs()) == 2


def test_what_cannot_be_deleted_is_a_failure_of_the_tool(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tfdyno.jobs.project.runs_removal.shutil.rmtree", refuse)
    assert main(["runs", "rm", FIRST, "--yes"]) == 3
    said = capsys.readouterr()
    assert ": Permission denied" in said.out
    assert said.err == (
        "tfdyno: 1 of them could not be deleted; the next tfdyno runs rm tries again.\n"
    )


def test_a_run_that_is_damaged_is_named_and_can_be_removed(
    history: ProjectHistory, capsys: pytest.CaptureFixture[str]
) -> None:
    with sqlite3.connect(history.path) as database:
        database.execute("UPDATE step SET noun = ? WHERE run = ?", (b"\xff", FIRST))
    assert f"tfdyno runs rm {FIRST} --project tfdyno-project forgets it" in refused(capsys, "list")
    assert answer(capsys, "rm", FIRST, "--yes")["runs"][0]["id"] == FIRST
    assert [one["id"] for one in answer(capsys, "list")["runs"]] == [SECOND]


def test_a_named_file_removes_and_lists_nothing_of_another_project(
    history: ProjectHistory, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    history.write(replace(project_run(THIRD, step_run("train")), project="beta"))
    (tmp_path / "other.toml").write_text('project.name = "beta"\nsteps.a.command = "doctor"\n')
    listed = answer(capsys, "list", "--project", "other.toml")["runs"]
    assert [one["id"] for one in listed] == [THIRD]
    assert answer(capsys, "rm", "--keep", "0", "--project", "other.toml", "--yes")["runs"] == listed
    assert [one.id for one in history.runs()] == [SECOND, FIRST]


def test_a_run_that_goes_on_is_not_removed(
    history: ProjectHistory, capsys: pytest.CaptureFixture[str]
) -> None:
    history.write(project_run(THIRD, step_run("train", status="running"), status="running"))
    lock = lock_folder(history.folder, LOCK)
    try:
        assert answer(capsys, "list")["runs"][0]["status"] == "running"
        assert f"run {THIRD} is going on; stop it" in refused(capsys, "rm", THIRD, "--yes")
        assert "is going on" in refused(capsys, "rm", "--keep", "0", "--dry-run")
        assert "in use by another run" in refused(capsys, "rm", FIRST, "--yes")
    finally:
        lock.close()
    assert answer(capsys, "list")["runs"][0]["status"] == "stopped"
    assert main(["runs", "rm", THIRD, "--yes"]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "2026"], "2026 is the beginning of several runs"),
        (["show", f"{FIRST[:-1]}z"], f"did you mean {FIRST}?"),
        (["compare", FIRST, "zzz"], "there is no run zzz; tfdyno runs list names them"),
        (["rm"], "say which runs go: their ids, or --keep N for all but the newest"),
        (["rm", FIRST, "--keep", "1"], "say which runs go"),
        (["rm", "--keep", "-1"], "keep"),
        (["list", "--project", ""], "--project is empty"),
        (["list", "--project", "a" * 300], "there is no aaa"),
        (["list", "--project", "tfdyno-project/history.sqlite"], "is not valid TOML"),
        (["list", "--project", "elsewhere"], "there is no elsewhere; name a project.toml"),
        (["list", "--project", "tfdyno-projct"], "did you mean tfdyno-project?"),
    ],
)
def test_wrong_words_are_one_sentence_and_change_nothing(
    history: ProjectHistory, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    err = refused(capsys, *words)
    assert said in err
    assert err.count("\n") == 1
    assert len(history.runs()) == 2
