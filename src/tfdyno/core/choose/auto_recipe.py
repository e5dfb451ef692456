"""A recipe that was chosen for a machine, with what was weighed and why each line is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.estimate import Route
from tfdyno.core.choose.workload import FineTune
from tfdyno.core.recipe.recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to run the workload with the same samples in every update of the weights."""

    precision: str
    """Keras dtype policy."""
    execution: Literal["xla", "graph"]
    replicas: int
    batch_size: int
    """Samples of each replica."""
    accumulation: int
    update_s: Interval
    """The time of all batches of an update."""
    device_memory_bytes: Interval
    usable_memory_bytes: float
    fits: bool
    """Whether the best figure of the memory is within what is usable."""
    fits_surely: bool
    """Whether the whole interval is."""
    compile_s: Interval
    changes: int
    """In how many ways the option departs from what the script does on its own."""
    warnings: tuple[str, ...] = ()
    remat: str = ""
    """What is computed again, as a recipe says it; empty: nothing."""
    recompute_ratio: float = 1.0
    """Time of a step over what it would take if nothing were computed again."""
    optimizer: str = ""
    """Keras optimizer in place of the script's own, which learns differently; empty: its own."""
    fine_tune: FineTune | None = None
    """How a preset is trained; None: the workload is none."""
    memory_made_by: Route = "quick"
    verified: bool = False
    """Whether ``fits`` rests on a compile at this very batch for this much memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoRecipe:
    """What was chosen."""

    recipe: Recipe
    reasons: dict[str, str]
    """A sentence for every setting of the recipe, by its flat name."""
    notes: tuple[str, ...]
    """What was not chosen and why, and what nobody knows."""
    target: str
    """What it is for: ``2 x NVIDIA L4``, ``the CPU of this machine``."""
    gpu: str = ""
    """Slug of the card; empty: none."""
    replicas: int = 1
    global_batch_size: int = 0
    """Samples of an update; 0: not known."""
    chosen: Option | None = None
    """None: nothing was estimated."""
    options: tuple[Option, ...] = ()
    """All that was weighed, fastest first."""
