"""runtime/train_jax: the child as its parent calls it, and an end that comes before the first step.

What it trains is looked at in jobs/launch/test_launch_jax.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.runtime.jaxes import variables

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.choose.workload import Workload
from tfdyno.core.messages.train import TRAIN_ON_JAX, Train, TrainOnJax
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.training import RunSettings
from tfdyno.jobs.child.worker import run_child
from tfdyno.runtime.train_jax.child import told

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf


@pytest.mark.slow
def test_a_script_without_fit_is_told(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import keras\n")
    workload = Workload(reference=str(script), kind="script", mode="train")
    training = Train(workload=workload, recipe=Recipe(seed=1), settings=RunSettings())
    request = TrainOnJax(training=training, plan=JaxPlan())
    with pytest.raises(UsageError, match=r"train\.py never calls fit"):
        run_child(TRAIN_ON_JAX, request, timeout_s=300, env=variables())


TINY = """
import keras, numpy as np
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((8, 2), "float32"), np.ones((8, 1), "float32"), batch_size=4)
"""


def test_gpus_that_jax_does_not_use_are_told_at_the_start_and_kept(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TINY)
    workload = Workload(reference=str(script), kind="script", mode="train")
    training = Train(workload=workload, recipe=Recipe(seed=1), settings=RunSettings())
    lines: list[str] = []
    request = TrainOnJax(training=training, plan=JaxPlan(), seen_gpus=2)
    made = run_child(TRAIN_ON_JAX, request, timeout_s=300, env=variables(), progress=lines.append)
    (told_once,) = [line for line in lines if "JAX computes on the CPU" in line]
    assert "this machine has 2 GPUs" in told_once
    assert told_once in made.notes


def failed(line: str, folder: Path) -> UsageError:
    """The error that a script of this line ends in, as ``measured_code`` makes it."""
    script = folder / "train.py"
    script.write_text(f"def run(tf):\n    {line}\n")
    found: dict[str, object] = {}
    exec(compile(script.read_text(), str(script), "exec"), found)
    error = UsageError("train.py failed")
    try:
        found["run"](None)  # type: ignore[operator]
    except AttributeError as cause:
        error.__context__ = cause
    return error


@pytest.mark.parametrize("name", ["tf.nn.relu", "tf.cast"])
def test_it_is_named_with_its_line(name: str, tmp_path: Path) -> None:
    found = str(told(failed(f"return {name}(3)", tmp_path)))
    assert f"train.py, line 2: {name} cannot run on the JAX backend" in found
    assert "use keras.ops" in found


@pytest.mark.parametrize("line", ["return tf.data.Dataset(3)", "return None.x", "tf.keras.x()"])
def test_other_failures_stay_what_they_are(line: str, tmp_path: Path) -> None:
    error = failed(line, tmp_path)
    assert told(error) is error


def test_a_process_that_is_gone_is_no_wrong_use() -> None:
    """Exit code 2 would keep an engine from starting it again."""
    error = UsageError("train.py failed")
    words = "UNKNOWN: Gloo AllGather failed: Read error [127.0.0.1]:1: Connection reset by peer"
    error.__context__ = type("JaxRuntimeError", (RuntimeError,), {})(words)
    found = told(error)
    assert isinstance(found, ToolError)
    assert "could not be exchanged with the other processes" in str(found)
