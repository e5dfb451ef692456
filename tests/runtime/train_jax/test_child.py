"""runtime/train_jax: the child as its parent calls it, and an end that comes before the first step.

What it trains is looked at in jobs/launch/test_launch_jax.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.runtime.jaxes import variables

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import Workload
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import RunSettings
from tfdyno.jobs.child.worker import run_child

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf


@pytest.mark.slow
def test_a_script_without_fit_is_told(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import keras\n")
    request = {
        "workload": to_builtins(Workload(reference=str(script), kind="script", mode="train")),
        "recipe": to_builtins(Recipe(seed=1)),
        "settings": to_builtins(RunSettings()),
        "plan": {}, "addresses": [], "rank": 0, "gpus": 0, "data": "",
    }  # fmt: skip
    with pytest.raises(UsageError, match=r"train\.py never calls fit"):
        run_child("tfdyno.runtime.train_jax.child", request, timeout_s=300, env=variables())
