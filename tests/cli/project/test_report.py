"""``tfdyno report`` end to end: text, JSON, page, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.past_runs import FIRST, SECOND, THIRD, failed_run, two_runs

from tfdyno.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


def test_the_newest_run_is_told_and_written_as_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two_runs(tmp_path)
    page = tmp_path / "report.html"
    assert main(["report", str(tmp_path), "--html", str(page)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"shapes, run {SECOND}")
    assert out.endswith(f"Wrote {page}.\n")
    html = page.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert html.rstrip().endswith("</html>")


def test_json_has_the_answer_and_the_documents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed_run(two_runs(tmp_path))
    monkeypatch.chdir(tmp_path)
    words = ["report", "--json", "--run", SECOND, "--against", FIRST]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["id"] == SECOND
    assert [one["before"] for one in found["compared"]] == [FIRST]
    assert main(["report", "--json"]) == 0  # a failed run is an answer, too
    assert json.loads(capsys.readouterr().out)["id"] == THIRD


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--run", "20261124-0500"], ""),
        (["--run", "20261124-051"], "there is no run 20261124-051; did you mean 20261124-0"),
        (["--run", "2026"], "2026 is the beginning of several runs"),
        (["--run", " "], "--run is empty"),
        (["--html", "."], "it is a folder; name a file in it"),
        (["a" * 300], "File name too long"),
        ([""], "project is empty"),
        (["--run", FIRST, "--against", SECOND], f"{SECOND} is not older than {FIRST}"),
        (["--html", "none/page.html"], "cannot write none/page.html: there is no folder none"),
    ],
)
def test_wrong_words_are_one_sentence_and_write_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    words: list[str], said: str,
) -> None:  # fmt: skip
    two_runs(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.glob("*"))
    assert main(["report", *words]) == (2 if said else 0)
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == bool(said)
    assert sorted(tmp_path.glob("*")) == before


def test_no_history_says_how_to_make_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path), "--html", str(page)]) == 2
    assert "holds no runs; tfdyno run project.toml makes one" in capsys.readouterr().err
    assert not page.exists()
    assert main(["report", str(tmp_path / "projct.toml")]) == 2
    assert "there is no" in capsys.readouterr().err


def test_a_damaged_history_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tfdyno-project").mkdir()
    (tmp_path / "tfdyno-project" / "history.sqlite").write_text("no database " * 99)
    assert main(["report", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert "is not a file of runs of tfdyno" in err
    assert err.count("\n") == 1
