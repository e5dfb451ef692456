"""The example project runs from pictures to a service, and goes on after every end."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.served import QUIET, ROOT, serving_folder
from tests.touched import seed_of

EXAMPLE = ROOT / "examples" / "project"
STEPS = ("prepare", "data", "advise", "train", "bench", "diagnose", "export", "keep", "serve")
ONE_AT_A_TIME_S = 280


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFDYNO_SERVING", str(serving_folder()))
    return Path(shutil.copytree(EXAMPLE, tmp_path / "project"))


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "tfdyno", "run", *words]


def environment() -> dict[str, str]:
    return {**os.environ, **QUIET, "PYTHONPATH": str(ROOT / "src")}


def run(folder: Path, *words: str) -> dict[str, Any]:
    """Run it to its end: the run."""
    done = subprocess.run(
        command("--json", "--quiet", *words), cwd=folder, capture_output=True, text=True,
        env=environment(), timeout=ONE_AT_A_TIME_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def statuses(found: dict[str, Any]) -> dict[str, str]:
    return {one["step"]: one["status"] for one in found["steps"]}


def documents(folder: Path, found: dict[str, Any]) -> dict[str, Any]:
    """What each step answered."""
    return {
        one["step"]: json.loads(
            (folder / "tfdyno-project" / one["output"] / "document.json").read_bytes()
        )
        for one in found["steps"]
    }


def same(folder: Path, found: dict[str, Any]) -> dict[str, Any]:
    """What does not depend on how fast the machine was, nor on how often it was stopped."""
    answers = documents(folder, found)
    export, keep = answers["export"], answers["keep"]
    shards = sorted((folder / answers["data"]["output"]).glob("*.tfrecord"))
    return {
        "shards": [hashlib.sha256(one.read_bytes()).hexdigest() for one in shards],
        "records": answers["data"]["records"],
        "history": answers["train"]["history"],
        "steps": answers["train"]["steps"],
        "model": export["source"]["weights_sha256"],
        "accuracies": [one["accuracy_after"] for one in export["formats"]],
        "version": keep["id"],
        "verdict": answers["serve"]["verdict"],
    }


def stopped(folder: Path, step: str, number: signal.Signals, draw: random.Random) -> bool:
    """Send a signal while a step runs, at any time of it; False: the run was at its end before."""
    process = subprocess.Popen(
        command(), cwd=folder, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env=environment(),
    )  # fmt: skip
    assert process.stderr
    with process, process.stderr as lines:
        for line in lines:
            if line.startswith(f"{step} ("):
                time.sleep(draw.choice((0.05, 0.5, 2.0, 4.0)) * draw.uniform(0.5, 1.0))
                break
        process.send_signal(number)
        # The next run starts at once: nothing may be left that is in its way.
        return process.wait(60) != 0


def test_the_readme_names_the_steps_and_the_files_that_are_there() -> None:
    text = (EXAMPLE / "README.md").read_text()
    project = (EXAMPLE / "project.toml").read_text()
    assert tuple(re.findall(r"^\[steps\.(\w+)\]", project, re.M)) == STEPS
    assert all(f"| {step} |" in text for step in STEPS)
    assert "tfdyno run\n" in text
    assert {"prepare.py", "train.py"} <= {path.name for path in EXAMPLE.iterdir()}


@pytest.mark.tf
def test_a_kill_at_any_moment_costs_one_step_and_then_nothing_is_left_to_do(folder: Path) -> None:
    draw = random.Random(seed_of())
    step = draw.choice(STEPS[:-1])
    assert stopped(folder, step, signal.SIGKILL, draw)
    found = run(folder)
    assert set(statuses(found).values()) <= {"finished", "reused"}
    for before in STEPS[: STEPS.index(step)]:
        assert statuses(found)[before] == "reused"
    facts = same(folder, found)
    assert (facts["records"], facts["steps"], facts["verdict"]) == (1400, 88, "good")
    assert all(accuracy > 0.8 for accuracy in facts["accuracies"])
    again = run(folder)
    assert statuses(again) == dict.fromkeys(STEPS, "reused")
    (folder / "train.py").write_text((folder / "train.py").read_text() + "\n# a remark\n")
    would = run(folder, "--dry-run")
    assert {name for name, status in statuses(would).items() if status != "reused"} == {
        "advise", "train", "bench", "diagnose", "export", "keep", "serve",
    }  # fmt: skip
    why = {one["step"]: one["why"] for one in would["steps"]}
    assert why["train"] == "train.py changed"


@pytest.mark.slow
@pytest.mark.tf
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_stopped_in_every_step_it_ends_as_if_it_had_not_been(
    number: signal.Signals, folder: Path, tmp_path: Path
) -> None:
    whole = Path(shutil.copytree(EXAMPLE, tmp_path / "whole"))
    straight = same(whole, run(whole))
    draw = random.Random(f"{seed_of()} {number}")
    times = sum(stopped(folder, step, number, draw) for step in STEPS)
    assert times >= len(STEPS) - 2  # some steps are over before the signal comes
    assert same(folder, run(folder)) == straight
