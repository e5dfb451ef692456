"""``scripts/gpu_truth`` as it is run, with real steps on the CPU."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from gpu_truth.rows import RowError, check_row, read_lines, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SCRIPT = Path(__file__).parents[2] / "scripts" / "gpu_truth"
MLP = ("--device", "cpu", "--framework", "jax", "--only", "mlp", "--subset", "mode=train")
"""The two training steps of the MLP that take least, in float32 and with TF32's name."""
LEAST = ("--subset", "precision=float32", "--subset", "precision=tf32")


def command(*words: object) -> list[str]:
    return [str(SCRIPT), *(str(word) for word in words)]


def environment(changes: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, "PYTHON": sys.executable, "XLA_FLAGS": "", **changes}


def gpu_truth(*words: object, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words), capture_output=True, text=True, env=environment(changes), check=False
    )


def until(ready: Callable[[], bool], limit_s: float = 60.0) -> None:
    end = time.monotonic() + limit_s
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_run_measures_a_step_and_the_next_one_skips_it(tmp_path: Path) -> None:
    output = tmp_path / "steps.jsonl"
    words = (*MLP, "--subset", "precision=float32", "--output", output, "--json")
    done = gpu_truth(*words)
    assert done.returncode == 0, done.stderr
    assert "mlp float32 b128 xla train jax: " in done.stderr
    told = json.loads(done.stdout)
    assert (told["rows"], told["skipped"], told["failed"], told["left"]) == (1, 0, [], 0)
    (row,) = read_rows(output, device="cpu")
    assert row == told["measured"][0]
    assert (row["params_m"], row["side_by_side"], len(row["window_ms"])) == (0.932, 1, 7)
    # Weights, their two moments in Adam, the counters and the batch, in bytes of float32.
    assert row["xla_memory"]["argument_size_in_bytes"] >= 3 * 932_362 * 4 + 128 * 784 * 4
    with pytest.raises(RowError, match="measured on a cpu"):
        check_row(row)
    again = json.loads(gpu_truth(*words).stdout)
    assert (again["rows"], again["skipped"]) == (0, 1)


def test_a_step_that_dies_is_noted_and_the_next_one_is_measured(tmp_path: Path) -> None:
    output = tmp_path / "steps.jsonl"
    words = (
        "--device", "cpu", "--only", "mlp", "--subset", "mode=train", "--output", output,
        "--subset", "precision=float32", "--framework", "tensorflow", "--side-by-side", 2,
    )  # fmt: skip
    # TensorFlow reads the flags when XLA compiles first, and aborts on one that it does not know.
    done = gpu_truth(*words, XLA_FLAGS="--no_such_flag=1")
    assert done.returncode == 0, done.stderr
    assert [row["execution"] for row in read_rows(output, device="cpu")] == ["graph"]
    ((_, failed),) = read_lines(Path(f"{output}.failed.jsonl"))
    assert failed["execution"] == "xla"
    assert failed["reason"].startswith("ended ")
    assert "Unknown flag in XLA_FLAGS: --no_such_flag=1" in failed["log"][-1]
    assert "Unknown flag in XLA_FLAGS" in done.stderr
    assert "1 row added to" in done.stdout
    assert "1 failed, told in" in done.stdout
    # A failed step is left alone until it is asked for again; other flags make it another one.
    assert "2 skipped" in gpu_truth(*words, XLA_FLAGS="--no_such_flag=1").stdout
    left = gpu_truth(*words, "--again", "--dry-run", XLA_FLAGS="--no_such_flag=1").stdout
    assert left.splitlines()[1:] == ["mlp float32 b128 xla train", "1 step"]
    assert gpu_truth(*words, "--dry-run").stdout.endswith("2 steps\n")


def test_a_step_that_hangs_is_ended_and_the_next_one_is_begun(tmp_path: Path) -> None:
    output = tmp_path / "steps.jsonl"
    words = (*MLP, *LEAST, "--output", output, "--side-by-side", 1, "--compile-limit", 0.5)
    done = gpu_truth(*words)
    assert done.returncode == 1
    assert not output.exists()
    failed = [row for _, row in read_lines(Path(f"{output}.failed.jsonl"))]
    assert [row["precision"] for row in failed] == ["tf32", "float32"]
    assert {row["reason"] for row in failed} == {"not compiled within 0.5 s"}


def test_an_interrupt_keeps_what_was_measured_and_leaves_no_process(tmp_path: Path) -> None:
    output = tmp_path / "steps.jsonl"
    words = (*MLP, *LEAST, "--output", output, "--side-by-side", 1)
    run = subprocess.Popen(
        command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment({}),
    )  # fmt: skip
    until(output.exists)
    until(lambda: bool(psutil.Process(run.pid).children()))  # the second step has begun
    children = psutil.Process(run.pid).children(recursive=True)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=30)
    assert run.returncode == 130, err
    assert [row["precision"] for row in read_rows(output, device="cpu")] == ["tf32"]
    assert "1 row added to" in out
    assert "1 step left (interrupted): the same command goes on" in out
    assert psutil.wait_procs(children, timeout=60)[1] == []
    assert gpu_truth(*words, "--dry-run").stdout.endswith("1 step\n")


def test_a_killed_run_leaves_no_process_that_waits_for_it(tmp_path: Path) -> None:
    output = tmp_path / "steps.jsonl"
    words = (*MLP, "--subset", "precision=tf32", "--output", output)
    run = subprocess.Popen(command(*words), stderr=subprocess.DEVNULL, env=environment({}))
    until(lambda: bool(psutil.Process(run.pid).children()))
    children: list[Any] = psutil.Process(run.pid).children()
    run.kill()
    run.wait()
    assert psutil.wait_procs(children, timeout=60)[1] == []
    assert not output.exists()


def test_a_damaged_output_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    output = tmp_path / "steps.jsonl"
    output.write_text('{"schema": 1, "model": "ml')
    done = gpu_truth(*MLP, "--output", output)
    assert done.returncode == 2
    assert f"{output}:1: no JSON" in done.stderr
    assert output.read_text() == '{"schema": 1, "model": "ml'


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there is a card")
def test_without_a_card_one_sentence_tells_so() -> None:
    done = gpu_truth("--only", "mlp")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("gpu_truth: no NVIDIA card 0 on this machine")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there is a card")
def test_a_card_that_the_framework_does_not_see_stops_the_run(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    told = "A100, GPU-1, 550, 40960, 5, 0, 400, 8.0, Disabled"
    program.write_text(f'#!/bin/sh\ncase "$*" in *=name*) echo "{told}" ;; esac')
    program.chmod(0o755)
    output = tmp_path / "steps.jsonl"
    done = gpu_truth(
        "--framework", "jax", "--only", "mlp", "--output", output,
        PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
    )  # fmt: skip
    assert done.returncode == 2
    assert "0 rows added" in done.stdout
    assert "sees no GPU, it would run on cpu" in done.stdout
    assert list(tmp_path.glob("*.failed.jsonl")) == []
