from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tfdyno.view.base.text import shown_width

MODEL = f"{Path(__file__).parents[1].parent / 'data' / 'models' / 'small.py'}:convnet"
QUICK = ("--route", "quick", "--batch-size", "64")


def tfdyno(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tfdyno", *words],
        capture_output=True, text=True, check=False, cwd=cwd, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_json_has_the_documented_keys_with_plain_numbers() -> None:
    done = tfdyno("advise", MODEL, *QUICK, "--epochs", "3", "--samples", "50000", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert set(answer["picks"]) == {"cheapest", "fastest", "balanced"}
    first = answer["ranking"][0]
    assert {"gpu", "count", "offer", "hours", "cost_usd", "reason", "verdict"} <= set(first)
    assert first["cost_usd"] == answer["picks"]["cheapest"]["cost_usd"]
    assert first["cost_usd_range"]["low"] <= first["cost_usd"] <= first["cost_usd_range"]["high"]
    front = answer["pareto"]
    assert [row["hours"] for row in front] == sorted(row["hours"] for row in front)
    assert {row["offer"] for row in front} <= {row["offer"] for row in answer["ranking"]}


def test_text_begins_with_the_answer_and_fits_80_columns() -> None:
    done = tfdyno("advise", MODEL, *QUICK, "--samples", "50000000")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Rent ")
    assert any(line.startswith("  balanced") for line in lines)
    assert "What would change the answer" in lines
    assert lines[-1].startswith("Next: tfdyno advise ")
    assert max(map(len, lines[:-1])) <= 80


def test_all_shows_every_group_with_its_reason() -> None:
    shown = tfdyno("advise", MODEL, *QUICK, "--all").stdout
    assert "No price in the catalogue (" in shown
    assert "This TensorFlow cannot run them (" in shown
    assert "add --all" not in shown


def test_without_a_feasible_card_the_nearest_group_is_shown() -> None:
    shown = tfdyno("advise", MODEL, *QUICK, "--scenario", "edge").stdout
    assert shown.startswith("Nothing is rented at the edge: the quickest that fits is ")
    assert "held" in shown


def test_the_report_is_written_whole_and_named(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = tfdyno("advise", MODEL, *QUICK, "--gpu", "t4,l4", "--html", str(page))
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith(f"Report: {page}")
    assert page.read_text().rstrip().endswith("</html>")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_chinese_text_and_page_have_the_figures_of_the_english_ones(tmp_path: Path) -> None:
    words = ("advise", MODEL, *QUICK, "--samples", "50000000", "--html", "page.html")
    english, chinese = tfdyno(*words, cwd=tmp_path), tfdyno(*words, "--lang", "zh", cwd=tmp_path)
    assert (english.stdout[:5], chinese.stdout[:2]) == ("Rent ", "租用")
    rows = r"(\d+)% +([\d,]+) +([\d.,]+)"  # share of the memory, largest batch, step
    assert re.findall(rows, english.stdout) == re.findall(rows, chinese.stdout) != []
    assert max(map(shown_width, chinese.stdout.splitlines()[:-1])) <= 80
    page = (tmp_path / "page.html").read_text()
    assert '<html lang="zh-Hans">' in page
    assert "<h2>什么会改变结论</h2>" in page


def test_json_is_english_unless_a_language_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFDYNO_LANG", "zh")
    words = ("advise", MODEL, *QUICK, "--gpu", "t4", "--json")
    plain, asked = (json.loads(tfdyno(*words, *more).stdout) for more in ((), ("--lang", "zh")))
    assert plain["headline"].startswith("Rent ")
    assert asked["headline"].startswith("租用")
    assert set(plain) == set(asked)
    assert plain["ranking"][0]["verdict"] == asked["ranking"][0]["verdict"] == "feasible"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--deadline-h", "nan"), "deadline nan is not possible"),
        (("--deadline-h", "0"), "deadline 0 is not possible"),
        (("--budget-usd", "-5"), "budget -5 is not possible"),
        (("--steps", "5", "--epochs", "2"), "give --steps, or --epochs and --samples, not both"),
        (("--global-batch", "64"), "give --batch-size or --global-batch, not both"),
        (("--max-nodes", "4"), "4 machines need a network between them"),
        (("--max-nodes", "4000", "--network", "eth-25g"), "4000 machines are not possible"),
        (("--link", "eth-25g", "--network", "ib-hdr-200"), "name the network once"),
        (("--network", "pcie4-x16"), "pcie4-x16 is no network"),
        (("--max-nodes", "0"), "nodes 0 is not possible"),
        (("--provider", "nobody"), "there is no offer of provider 'nobody'"),
        (("--gpu", "rtx-9090"), "rtx-9090"),
        (("--owned", "rtx-9090"), "rtx-9090"),
        (("--offers", "no-such-file.csv"), "no-such-file.csv"),
        (("--scenario", "industrial", "--spot"), "--spot contradicts --scenario industrial"),
        (("--tf", "newest"), "'newest' is no release of TensorFlow or JAX"),
        (("--tensorflow", "2.4"), "TensorFlow 2.4 is too old"),
        (("--tensorflow", "1.2"), "TensorFlow 1.2 is too old; name a release from 2.9 to"),
        (("--html", "/no/such/folder/report.html"), "there is no folder /no/such/folder"),
        (("--html", "."), "it is a folder"),
        (("--count", "0"), "count 0 is not possible"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(words: tuple[str, ...], sentence: str) -> None:
    done = tfdyno("advise", MODEL, *QUICK, *words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused_before_the_trace(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    done = tfdyno("advise", MODEL, *QUICK, "--html", str(tmp_path / "report.html"))
    assert done.returncode == 2
    assert "permission denied" in done.stderr


FULL = ("--batch-size", "29000", "--samples", "1000000", "--gpu", "t4", "--count", "1")
"""With it the step takes more than half of the card: a compile has to say how it is held."""


def test_the_first_answer_stands_before_the_compile_also_where_nobody_looks(
    tmp_path: Path,
) -> None:
    env = {**os.environ, "TFDYNO_CACHE": str(tmp_path)}
    asked = [sys.executable, "-m", "tfdyno", "advise", MODEL, *FULL]
    with subprocess.Popen(
        asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env
    ) as process:
        assert process.stdout
        line = process.stdout.readline()
        assert list(tmp_path.glob("program/*/program.json")) == []
        rest = process.stdout.read()
    assert line.startswith("First answer. Now being compiled: the memory of T4. The final answer")
    first, final = rest.split("\nFinal answer\n")
    for text in (first, final):
        assert "Rent one T4" in text
        assert "  balanced" in text
    assert "compiled at\nthis very batch" not in first
    assert "compiled at" in final
    assert "Assumed: " not in first  # only what decides is told twice
    again = subprocess.run(asked, capture_output=True, text=True, env=env)
    assert again.stdout == final.lstrip("\n")


def test_json_stays_one_document_and_the_first_answer_is_a_line_of_progress(
    tmp_path: Path,
) -> None:
    env = {**os.environ, "TFDYNO_CACHE": str(tmp_path)}
    asked = [sys.executable, "-m", "tfdyno", "advise", MODEL, *FULL, "--json"]
    done = subprocess.run(asked, capture_output=True, text=True, env=env)
    answer = json.loads(done.stdout)
    assert answer["ranking"][0]["estimate"]["fits_verified"]
    assert answer["open_fits"] == []
    assert "tfdyno: first answer: Rent one T4" in done.stderr
