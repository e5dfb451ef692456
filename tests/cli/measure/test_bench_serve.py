from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import click
import pytest
from tests.load_servers import serving

from tfdyno.cli.main import main
from tfdyno.cli.measure.bench_serve import bench_serve

ROOT = Path(__file__).parents[3]


def bench(url: str, *words: str) -> int:
    return main(["bench", "--serve", url, *words, "-q"])


def test_text_begins_with_the_answer_and_files_hold_all(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page, output = tmp_path / "a.html", tmp_path / "a.json"
    with serving(work_s=0.002) as origin:
        url = f"{origin}/v1/models/m"
        code = bench(url, "--seconds", "0.5", "--clients", "2", "--usd-per-h", "1",
                     "--html", str(page), "--output", str(output))  # fmt: skip
    assert code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"m at {url}: ")
    assert "per million requests at $1.00/h" in " ".join(out.split())
    assert "<title>m: " in page.read_text()
    document = json.loads(output.read_text())
    assert (document["format"], document["verdict"]) == ("tfdyno load 1", "good")
    run = document["stages"][0]["run"]
    assert len(run["latency_s"]) == len(run["codes"]) == len(run["start_s"]) > 50
    assert document["usd_per_million"] == pytest.approx(1e6 / 3600 / document["accepted_per_s"])


def test_a_failure_is_told_first_and_has_no_figures(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(fail_every=10) as origin:
        url = f"{origin}/v1/models/m"
        assert bench(url, "--seconds", "0.5") == 1
        assert capsys.readouterr().out.startswith(f"FAILED: m at {url}: ")
        assert bench(url, "--seconds", "0.5", "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "failed"
    assert document["faults"]
    assert document["accepted_per_s"] is None


def test_a_chinese_reader_is_told_why_and_the_file_says_it_in_english(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TFDYNO_LANG")
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    page, output = tmp_path / "a.html", tmp_path / "a.json"
    with serving(fail_every=10) as origin:
        url = f"{origin}/v1/models/m"
        code = bench(url, "--seconds", "0.5", "--html", str(page), "--output", str(output))
    assert code == 1
    out = "".join(capsys.readouterr().out.split())
    assert out.startswith(f"失败：{url}上的m：64个客户端时：")
    assert "每个客户端等到应答再发下一个" in out
    assert "<h2>失败原因</h2>" in page.read_text()
    faults = json.loads(output.read_text())["faults"]
    assert all(one.isascii() and one.endswith(" with 64 clients") for one in faults)


def answered(origin: str) -> int:
    """How many requests the server has answered, by its own statistics."""
    with urllib.request.urlopen(f"{origin}/v2/models/m/stats") as reply:
        (stats,) = json.load(reply)["model_stats"]
    return sum(one["compute_infer"]["count"] for one in stats["batch_stats"])


def test_ctrl_c_shows_what_was_measured() -> None:
    with serving(work_s=0.002) as origin:
        command = [sys.executable, "-m", "tfdyno", "bench", "--serve", f"{origin}/v1/models/m",
                   "--seconds", "60"]  # fmt: skip
        variables = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables
        )
        while answered(origin) < 20:
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "answers/s" in out
    assert "Ctrl-C ended it" in out
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "words",
    [
        ("--clients", "2", "--rate", "5"),
        ("--precision", "float32"),
        ("--rate", "nan"),
        ("--rate", "5,,6"),
        ("--clients", "0"),
        ("--usd-per-h", "1", "--offer", "x"),
        ("--html", "/nowhere/a.html"),
        ("train.py",),
    ],
)
def test_options_that_do_not_belong_are_refused(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench("http://127.0.0.1:9/v1/models/m", *words) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_every_option_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--serve", "--help"]) == 0
    assert "--p99-ms T" in capsys.readouterr().out
    assert all(one.help for one in bench_serve.params if isinstance(one, click.Option))


def test_options_of_a_load_test_do_not_go_with_a_training(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["bench", "train.py", "--clients", "3"]) == 2
    assert "--clients" in capsys.readouterr().err
