"""runtime/train_jax: the child as its parent calls it, and an end that comes before the first step.

What it trains is looked at in jobs/launch/test_launch_jax.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.runtime.jaxes import variables

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import Workload
from tfdyno.core.messages.train import TRAIN_ON_JAX, Train, TrainOnJax
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.training import RunSettings
from tfdyno.jobs.child.worker import run_child

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
