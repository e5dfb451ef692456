"""store/run_folder: what a run leaves is read back, and no two commands train in one folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import Workload
from tfdyno.core.recipe.recipe import InputOptions, Recipe
from tfdyno.core.recipe.retreat import Retreat
from tfdyno.core.train.training import RunSettings
from tfdyno.store.run_folder import RUN_FILE, RunFolder, RunRecord, unused

if TYPE_CHECKING:
    from pathlib import Path

RECORD = RunRecord(
    workload=Workload(reference="train.py", kind="script", script_arguments=("--fast",)),
    settings=RunSettings(output="run", epochs=3, checkpoint_s=30.0),
    seed=7,
    outcome={"history": {"loss": [1.0, None]}, "stopped": "NaN loss"},
)
HOLDER = """
import sys, time
from pathlib import Path
from tfdyno.store.run_folder import RunFolder
with RunFolder(Path(sys.argv[1])).held():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    found = RunFolder(tmp_path / "deep" / "run")
    found.prepare()
    return found


def test_a_run_is_read_back_as_it_was_written(folder: RunFolder) -> None:
    assert not folder.holds_run
    recipe = Recipe(precision="mixed_bfloat16", seed=7, input=InputOptions(prefetch=4))
    folder.write_recipe(recipe)
    folder.write(RECORD)
    assert folder.holds_run
    assert folder.read() == (RECORD, recipe)
    assert json.loads((folder.path / RUN_FILE).read_text())["outcome"]["history"]["loss"][1] is None


def test_steps_back_that_another_process_left_are_taken_once(folder: RunFolder) -> None:
    assert folder.take_retreats() == ()
    step = Retreat(step="no_triton", words="without Triton", flags=("--xla_a=false",))
    folder.leave_retreats((step,))
    assert folder.take_retreats() == (step,)
    assert folder.take_retreats() == ()


def test_a_folder_without_a_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot resume in .*: there is no run in it; leave"):
        RunFolder(tmp_path).read()


def test_a_damaged_record_is_told_with_its_file(folder: RunFolder) -> None:
    folder.write_recipe(Recipe())
    (folder.path / RUN_FILE).write_text("{")
    with pytest.raises(UsageError, match=r"run\.json is not valid JSON"):
        folder.read()


def test_a_file_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(UsageError, match=r"cannot write to .*/run"):
        RunFolder(tmp_path / "run").prepare()
    assert (tmp_path / "run").read_text() == "mine"


@pytest.mark.skipif(os.name != "posix", reason="no such lock on Windows")
def test_one_command_trains_in_it_until_it_ends_however_it_ends(folder: RunFolder) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder.path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert other.stdout
    assert other.stdout.readline() == "held\n"
    text = f"is in use by another run: process {other.pid} on "
    with pytest.raises(UsageError, match=text), folder.held():
        pass
    other.kill()
    other.communicate()
    with folder.held():
        pass


def test_a_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    wanted = tmp_path / "run-1"
    assert unused(wanted) == wanted
    for name in ("run-1", "run-1-2"):
        (tmp_path / name).mkdir()
    assert unused(wanted) == tmp_path / "run-1-3"
