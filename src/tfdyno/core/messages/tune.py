"""What a tuning, the driver of Ray and its nodes tell each other, a line of JSON each."""

from __future__ import annotations

from dataclasses import dataclass

from tfdyno.core.base.errors import Failure
from tfdyno.core.choose.workload import Workload
from tfdyno.core.measure.fix_proof import Agreement
from tfdyno.core.measure.measurement import Environment, Measured
from tfdyno.core.measure.software import Backend
from tfdyno.core.messages.bench import MeasureHere
from tfdyno.core.recipe.recipe import Recipe

LOST = "lost"
"""Kind of a failure that is no trial's fault: what measures is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookHere:
    """Tell where a run would be made."""

    workload: Workload
    recipe: Recipe
    backend: Backend = "tensorflow"
    """Of Keras."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two recipes of a workload whose losses are compared."""

    workload: Workload
    before: Recipe
    after: Recipe
    batch_size: int = 0
    """Samples of each replica without a recipe; 0: not known."""
    steps_per_epoch: int = 0
    """0: not known."""
    is_loop: bool = False
    backend: Backend = "tensorflow"
    """Of Keras, for both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWork:
    """What a node does in the place of the command."""

    work: LookHere | MeasureHere | Pair
    folder: str
    """That paths are relative to."""
    on_cpu: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAnswer:
    """What came of it."""

    found: Measured | Environment | Agreement | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWanted:
    """A line to the driver: a run of a trial, the first one or one that follows."""

    trial: int
    run: int = 0
    node: str = ""
    work: NodeWork | None = None
    """None: no run follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RayNode:
    """A machine of the cluster."""

    id: str
    name: str
    cpus: int
    gpus: int
    kinds: tuple[str, ...] = ()
    """Of its cards, as Ray calls them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RayBegun:
    """The first line of the driver."""

    nodes: tuple[RayNode, ...] = ()
    failed: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDone:
    """Every other one."""

    run: int
    answer: NodeAnswer
