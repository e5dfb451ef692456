"""cli/launch_answer: the command that goes on with a run is the one that began it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.cli.typed import typed

from tfdyno.cli.train.jax_options import jax_plan
from tfdyno.cli.train.launch import _Options, _plan
from tfdyno.cli.train.launch_answer import resume_command
from tfdyno.core.choose.workload import Workload
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import TrainOutcome
from tfdyno.jobs.launch.local import Launched
from tfdyno.store.run_folder import RunRecord

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    return tmp_path


def test_the_command_that_goes_on_asks_for_the_same(folder: Path) -> None:
    launched = Launched(
        folder=folder / "inner" / "run",
        outcome=TrainOutcome(history={}, epochs=1, steps=1, updates=1),
        record=RunRecord(workload=Workload(reference="train.py", kind="script", mode="train")),
        recipe=Recipe(),
    )
    words = [
        "train.py", "--nodes", "2", "--time-limit", "1.5h", "--restarts", "3", "--port", "5000",
        "--python", "/opt/python", "--workdir", "inner", "--output", "run", "--env", "A=b c",
        "--checkpoint-every", "1000000s", "--epochs", "3", "--", "-x",
    ]  # fmt: skip
    (folder / "inner").mkdir()
    (folder / "inner" / "train.py").touch()
    first = _plan(typed(_Options, *words), None)
    again = shlex.split(resume_command(first, launched))
    assert again[:2] == ["tfdyno", "launch"]
    second = _plan(typed(_Options, *again[2:]), None)
    assert second == replace(first, output=str(folder / "inner" / "run"))
    words[1:1] = ["--on", "ray", "--with", "address=a:6379", "--cpus", "3", "--memory", "1.5GiB",
                  "--name", "mine", "--backend", "jax", "--mesh", "data=2,model=2",
                  "--host-devices", "2", "--rule", r".*up(_\d+)?/kernel=-,model"]  # fmt: skip
    options = typed(_Options, *words)
    first = _plan(options, jax_plan(options.jax))
    again = shlex.split(resume_command(first, launched))
    options = typed(_Options, *again[2:])
    second = _plan(options, jax_plan(options.jax))
    assert second == replace(first, output=str(folder / "inner" / "run"))
