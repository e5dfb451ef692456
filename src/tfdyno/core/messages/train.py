"""The children that train: on TensorFlow, and on Keras' JAX backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tfdyno.core.choose.workload import Workload
from tfdyno.core.messages.child import Child
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.training import RunSettings, TrainOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Train:
    """Train a workload."""

    workload: Workload
    recipe: Recipe
    settings: RunSettings
    data: str = ""
    """``file.py:function`` that returns the data; empty: the workload brings its own."""
    peaks: Mapping[str, list[float]] = field(default_factory=dict)
    """FLOP/s of each card by the dtype of the layers; empty: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOnJax:
    """Train a workload as one process of one or several."""

    training: Train
    plan: JaxPlan
    addresses: tuple[str, ...] = ()
    """Of all processes by rank; empty: it is alone."""
    rank: int = 0
    gpus: int = 0
    """That this process has to have."""
    seen_gpus: int = 0
    """NVIDIA GPUs that the machine shows: where JAX has none, it is told."""


TRAIN = Child(module="tfdyno.runtime.train.child", request=Train, result=TrainOutcome)
TRAIN_ON_JAX = Child(
    module="tfdyno.runtime.train_jax.child", request=TrainOnJax, result=TrainOutcome
)
