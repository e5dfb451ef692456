from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "tfdyno", "calibrate", "--card", "cpu"]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "TFDYNO_DATA": str(folder)}


def test_it_sweeps_the_processors_and_writes_what_others_may_add(tmp_path: Path) -> None:
    share = tmp_path / "share.json"
    done = subprocess.run(
        [*COMMAND, "--seconds", "12", "--share", str(share), "--json", "-q"],
        capture_output=True, text=True, env=environment(tmp_path), timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["takes_effect"]
    assert Path(told["path"]) == tmp_path / "cards" / "cpu.tensorflow.json"
    shared = json.loads(share.read_text())
    assert shared["kernels"] == told["card"]["kernels"]
    assert shared["left_out"] == []


def test_ctrl_c_keeps_what_was_measured_and_no_card_file(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--seconds", "120", "-v"], stderr=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, env=environment(tmp_path),
    )  # fmt: skip
    assert process.stderr
    for line in process.stderr:
        if "10 of" in line:
            process.send_signal(signal.SIGINT)
            break
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert [path.name for path in (tmp_path / "cards").iterdir()] == [
        "cpu.tensorflow.unfinished.json"
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--seconds", "3"], "a sweep of 3 s is not possible"),
        (["--seconds", "nan"], "time"),
        (["--card", "first"], "there is no card 'first'"),
        (["--framework", "torch"], "torch"),
        (["--share", "/no/such/folder/x.json"], "cannot write"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(
    tmp_path: Path, words: list[str], told: str
) -> None:
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, env=environment(tmp_path), check=False,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert told in done.stderr
    assert not (tmp_path / "cards").exists()
