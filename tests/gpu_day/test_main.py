"""``scripts/gpu_day`` as it is run, with real commands on the CPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from gpu_day.day import Day
from gpu_day.main import WrongUseError, _group, _rows, chosen
from gpu_day.steps import Step, planned
from gpu_day.verdict import Verdict
from gpu_truth.card import find_card

SCRIPT = Path(__file__).parents[2] / "scripts" / "gpu_day"


def gpu_day(*words: object, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SCRIPT), *map(str, words)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHON": sys.executable, **changes},
    )  # fmt: skip


def document(out: Path) -> dict[str, Any]:
    return dict(json.loads((out / "day.json").read_text()))


def status(out: Path) -> dict[str, str]:
    return {row["name"]: row["status"] for row in document(out)["steps"]}


def test_a_day_of_one_step_leaves_page_json_logs_and_telemetry_and_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "day"
    done = gpu_day("--cpu", "--only", "doctor", "--out", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "1 passed on the CPU, which says nothing of a card", str(out / "day.html"),
    ]  # fmt: skip
    (row,) = document(out)["steps"]
    assert [one["what"] for one in row["checks"]][:1] == ["errors named"]
    assert sorted(row["logs"]) == ["logs/doctor-1.err", "logs/doctor-1.out"]
    assert json.loads((out / "logs" / "doctor-1.out").read_text())["machine"]["tensorflow"]
    assert "CPU: 1 passed" in (out / "day.html").read_text()
    assert (out / "telemetry.csv").read_text().startswith("at_s,load_percent")

    again = gpu_day("--cpu", "--only", "doctor", "--out", out)
    assert (again.returncode, "holds a day already" in again.stderr) == (2, True)
    began = document(out)["about"]
    on = gpu_day("--cpu", "--only", "doctor,estimate,export", "--out", out, "--resume",
                 "--seconds", "300")  # fmt: skip
    assert on.returncode == 0
    both = document(out)["about"]
    assert (both["date"], both["seconds_s"]) == (began["date"], began["seconds_s"] + 300.0)
    assert "doctor:" not in on.stderr  # it is over
    assert status(out) == {"doctor": "passed", "estimate": "skipped", "export": "skipped"}


def test_again_tries_what_failed_and_only_that(tmp_path: Path) -> None:
    rows = [{"name": "doctor", "title": "x", "status": "passed"},
            {"name": "export", "title": "x", "status": "failed", "why": "y"}]  # fmt: skip
    (tmp_path / "day.json").write_text(json.dumps({"about": {"card": "CPU"}, "steps": rows}))
    words = ("--cpu", "--only", "doctor,export", "--out", tmp_path, "--resume")
    assert gpu_day(*words).returncode == 1
    assert status(tmp_path) == {"doctor": "passed", "export": "failed"}
    assert gpu_day(*words, "--again").returncode == 0
    assert status(tmp_path) == {"doctor": "passed", "export": "skipped"}


def test_time_that_is_up_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    done = gpu_day("--cpu", "--only", "doctor,tune", "--out", tmp_path / "day", "--seconds", "3")
    assert done.returncode == 0
    assert "2 not run" in done.stdout
    assert "--resume goes on" in done.stdout
    assert {row["why"] for row in document(tmp_path / "day")["steps"]} == {"time was up"}


def test_ctrl_c_writes_the_page_with_what_there_is_and_ends_the_commands(tmp_path: Path) -> None:
    out = tmp_path / "day"
    child = subprocess.Popen(
        [str(SCRIPT), "--cpu", "--only", "doctor,alike", "--out", str(out)],
        env={**os.environ, "PYTHON": sys.executable}, stdout=-1, stderr=-1, text=True,
    )  # fmt: skip
    assert child.stderr
    next(line for line in child.stderr if line.startswith("alike"))
    time.sleep(2.0)
    other = gpu_day("--cpu", "--only", "doctor", "--out", out, "--resume")
    assert (other.returncode, "another gpu_day is at work" in other.stderr) == (2, True)
    child.send_signal(signal.SIGINT)
    told, _ = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "1 passed, 1 not run" in told
    assert status(out) == {"doctor": "passed", "alike": "not run"}
    commands = [Path(f"/proc/{pid}/cmdline") for pid in os.listdir("/proc") if pid.isdigit()]  # noqa: PTH208
    assert not [one for one in commands if str(out) in _text(one)]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def test_wrong_use_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    if find_card("0") is None:
        done = gpu_day("--out", tmp_path / "day")
        assert done.returncode == 2
        assert done.stderr.startswith("gpu_day: no NVIDIA card 0 on this machine")
        assert "--cpu" in done.stderr
    done = gpu_day("--cpu", "--only", "doctr", "--out", tmp_path / "day")
    assert (done.returncode, "there is no step doctr" in done.stderr) == (2, True)
    done = gpu_day("--cpu", "--resume", "--out", tmp_path / "day")
    assert (done.returncode, "there is no day in" in done.stderr) == (2, True)
    assert not (tmp_path / "day").exists()
    (tmp_path / "file").write_text("")
    done = gpu_day("--cpu", "--only", "doctor", "--out", tmp_path / "file")
    assert (done.returncode, "cannot be written" in done.stderr) == (2, True)


def test_a_damaged_day_or_one_of_another_card_is_not_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "day.json").write_text('{"about": {"card": "NVIDIA H200"}, "steps": []}')
    done = gpu_day("--cpu", "--resume", "--out", tmp_path)
    assert "is of NVIDIA H200, and this is CPU" in done.stderr
    (tmp_path / "day.json").write_text("{")
    done = gpu_day("--cpu", "--resume", "--out", tmp_path)
    assert (done.returncode, "cannot be read" in done.stderr) == (2, True)


def test_what_is_missing_is_said_at_once_and_its_steps_are_skipped(tmp_path: Path) -> None:
    """A bare Python, as of a fresh machine."""
    command = [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")]
    subprocess.run(command, check=True)
    out = tmp_path / "day"
    python = str(tmp_path / "env" / "bin" / "python")
    done = gpu_day("--cpu", "--only", "doctor,calibrate,truth", "--out", out, PYTHON=python,
                   PYTHONPATH="")  # fmt: skip
    assert done.returncode == 0
    first = done.stderr.splitlines()[0]
    assert first.startswith("Not installed for this Python: ahocorasick-rs, click, jinja2, msgspec")
    assert "pip install ahocorasick-rs click" in first
    assert set(status(out).values()) == {"skipped"}


def test_steps_are_named_alone_or_all_of_a_kind() -> None:
    steps = planned()
    assert len(chosen(steps, "diagnose")) == 8
    assert [one.name for one in chosen(steps, "diagnose:iris_mlp, doctor")] == [
        "doctor", "diagnose:iris_mlp",
    ]  # fmt: skip
    assert chosen(steps, "") == steps
    with pytest.raises(WrongUseError, match="there is no step x"):
        chosen(steps, "x")


def test_steps_with_the_same_number_run_side_by_side_and_one_that_breaks_ends_alone(
    tmp_path: Path,
) -> None:
    day = Day(out=tmp_path, environment={}, card=None, end_s=time.monotonic() + 50.0)
    both = threading.Barrier(2)

    def meets(_day: Day) -> Verdict:
        both.wait(20.0)
        return Verdict(status="passed")

    def breaks(_day: Day) -> Verdict:
        raise KeyError("rows")

    steps = [
        Step(name=name, title=name, limit_s=40.0, least_s=1.0, try_it=what, needs=(), beside=1)
        for name, what in (("one", meets), ("broken", breaks), ("two", meets))
    ]
    rows = {row.name: row.status for row in _rows(steps, day, (), time.monotonic(), lanes=3)}
    assert rows == {"one": "passed", "broken": "failed", "two": "passed"}
    alone = Step(name="alone", title="", limit_s=1.0, least_s=0.0, try_it=meets)
    assert [one.name for one in _group([*steps, alone])] == ["one", "broken", "two"]
    assert _group([alone, *steps]) == [alone]


def test_a_step_has_its_own_time_and_never_more_than_the_day(tmp_path: Path) -> None:
    day = Day(out=tmp_path, environment={}, card=None, end_s=time.monotonic() + 50.0)
    assert 5.0 < day.begin("doctor", 10.0).left_s <= 10.0
    one = day.begin("doctor", 100.0, GROWTH="yes")
    assert 40.0 < one.left_s <= 50.0
    assert (one.environment, day.environment) == ({"GROWTH": "yes"}, {})
    assert one.stopped is day.stopped
