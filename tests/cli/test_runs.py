"""``tfdyno runs`` end to end: list, show, compare, remove."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.past_runs import FIRST, SECOND, THIRD, failed_run, project_run, step_run, two_runs

from tfdyno.cli.main import main
from tfdyno.core.folder_lock import FolderLock
from tfdyno.core.project import LOCK

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.store.project_history import ProjectHistory


@pytest.fixture(autouse=True)
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectHistory:
    monkeypatch.chdir(tmp_path)
    return two_runs(tmp_path)


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> Any:  # noqa: ANN401
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


def test_a_run_that_goes_on_is_not_removed(
    history: ProjectHistory, capsys: pytest.CaptureFixture[str]
) -> None:
    history.write(project_run(THIRD, step_run("train", status="running"), status="running"))
    lock = FolderLock(history.folder, LOCK)
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
