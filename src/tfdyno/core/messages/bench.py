"""The children that measure: a run, the place of one, losses of a loop, all-reduces."""

from __future__ import annotations

from dataclasses import dataclass

from tfdyno.core.choose.workload import Workload
from tfdyno.core.cluster.cluster_facts import AllReduce, Exchange
from tfdyno.core.measure.measurement import BenchRun, BenchTask, Protocol
from tfdyno.core.measure.software import Backend, Software
from tfdyno.core.messages.child import Child, Nothing
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.recipe.retreat import Retreat


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureHere:
    """Run a workload once in a fresh process, here or on a node of Ray."""

    workload: Workload
    """What to run, with its real weights and data."""
    recipe: Recipe
    """The settings, in force before TensorFlow starts."""
    protocol: Protocol
    """How long, on which data."""
    order: int
    """Position among the runs of the session."""
    doing: str
    """``run 2 of train.py``, for messages."""
    backend: Backend = "tensorflow"
    """Of Keras."""
    first_weights: str = ""
    """As ``MeasureRun`` has it."""
    had: tuple[Retreat, ...] = ()
    """Steps back that the runs before it took."""
    limit_bytes: int = 0
    """Of resident memory, where more ends the run; 0: none, on a node of Ray most of its memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRun:
    """Measure a workload once."""

    workload: Workload
    recipe: Recipe
    protocol: Protocol
    backend: Backend = "tensorflow"
    """Of Keras."""
    first_weights: str = ""
    """File of the weights to begin with, made where it is not there; the first results are kept
    then. Empty: it begins with its own."""
    seen_gpus: int = 0
    """NVIDIA GPUs that the machine shows: where JAX has none, it is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """One run as its process saw it, without telemetry and order."""

    run: BenchRun
    task: BenchTask
    software: Software


@dataclass(frozen=True, slots=True, kw_only=True)
class TellLosses:
    """Run so many steps of a training loop of the user's own, or fewer where it ends before."""

    workload: Workload
    recipe: Recipe
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureAllReduce:
    """Run all-reduces until the time is spent."""

    between: Exchange
    sizes_bytes: tuple[int, ...]
    """Growing."""
    budget_s: float


RUN = Child(module="tfdyno.runtime.bench.child", request=MeasureRun, result=MeasuredRun)
PLACE = Child(module="tfdyno.runtime.base.place", request=Nothing, result=Software)
PLACE_ON_JAX = Child(module="tfdyno.runtime.train_jax.place", request=Nothing, result=Software)
LOSSES = Child(module="tfdyno.runtime.bench.losses", request=TellLosses, result=tuple[float, ...])
ALL_REDUCE = Child(
    module="tfdyno.runtime.bench.all_reduce", request=MeasureAllReduce, result=AllReduce
)
