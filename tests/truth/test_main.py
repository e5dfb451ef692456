from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tfdyno_truth.main import COMMANDS, main
from tfdyno_truth.publish import SCORES
from tfdyno_truth.run import ROOT, TIME_MODEL

if TYPE_CHECKING:
    from pathlib import Path


def test_the_shipped_scores_of_a_subset_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "--subset", "framework=tensorflow", "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["way"], told["subset"], err) == ("shipped", ["framework=tensorflow"], "")
    (line,) = told["scores"]["whole"]
    assert line["label"] == "TensorFlow"
    assert 0.0 < line["score"]["mean"] < 0.3
    assert line["order"]["pairs"] > 500


def test_the_answer_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "--subset", "gpu=t4"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Shipped constants, all rows seen: mean error TensorFlow ")
    assert err == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["score", "--subset", "gpu=a1000"], "did you mean a100"),
        (["score", "--leave-out", "card"], "'card' is not one of 'outer', 'gpu', 'model', 'pair'"),
        (["ablate", "e_lop"], "did you mean e_loop"),
        (["fit", "--without", "e_lop", "--dry-run"], "no such term: e_lop"),
        (["scroe"], "did you mean score"),
    ],
)
def test_wrong_words_end_with_a_sentence_and_exit_code_2(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert err.count("\n") == 1


def test_an_empty_folder_of_records_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", "--folder", str(tmp_path), "--quiet"]) == 2
    assert "no kernel record" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert "Usage: tfdyno-truth" in capsys.readouterr().out


def test_what_one_measured_card_is_worth(capsys: pytest.CaptureFixture[str]) -> None:
    before = [path.read_bytes() for path in (TIME_MODEL, ROOT / "docs" / "accuracy.md")]
    stored = SCORES.read_bytes() if SCORES.exists() else b""
    assert main(["recalibrate", "--json", "--quiet"]) == 0
    gains = {gain["label"]: gain for gain in json.loads(capsys.readouterr().out)["gains"]}
    xla, graph = gains["TensorFlow, xla"], gains["TensorFlow, graph"]
    assert xla["cells"] > 120
    assert xla["mean_after"] < xla["mean_before"]
    assert graph["cells"] > 100
    assert graph["mean_after"] < graph["mean_before"]
    assert before == [path.read_bytes() for path in (TIME_MODEL, ROOT / "docs" / "accuracy.md")]
    assert stored == (SCORES.read_bytes() if SCORES.exists() else b"")
