"""How a workload is made to fit a card: the ways there are, what each costs, which to take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.auto_recipe import Option
from tfdyno.core.choose.sharding import Sharding
from tfdyno.core.recipe.recipe import Recipe

OPTIMIZERS = ("adafactor", "lion", "sgd")
"""Optimizers of Keras that keep less than Adam: weighed in place of a script's own."""
Learning = Literal[
    "optimizer", "batch statistics", "adapters alone", "rounded weights", "shorter samples"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOption:
    """One way to run the workload, beside what the script does on its own."""

    option: Option
    time_ratio: Interval
    """The time per sample over that of the script as it is on a card that had the room."""
    learns_differently: tuple[Learning, ...] = ()
    """What of it changes what is learned, and not only how long it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """What was weighed for one card."""

    gpu: str
    samples: int
    """Samples of an update of the weights, the same for every option."""
    base: PlannedOption
    """The script as it is, whether it fits or not."""
    options: tuple[PlannedOption, ...]
    """Those that fit and that no other beats in both memory and time, with the chosen one, which
    may need fewer changes than what beats it; fastest first. What learns differently beats none
    that learns as the script does."""
    chosen: PlannedOption | None
    """The one to take; None: nothing fits."""
    safe: PlannedOption | None = None
    """The fastest whose whole range fits, where that is not certain of the chosen one."""
    closest: PlannedOption | None = None
    """The one that needs least, where nothing fits."""
    recipe: Recipe | None = None
    """The settings of the chosen one; an optimizer is no setting and stands in ``notes``."""
    reasons: dict[str, str]
    """A sentence for every setting of the recipe, by its flat name."""
    notes: tuple[str, ...] = ()
    """What was left out and why, and what the answer rests on."""
    weighed: int = 0
    """How many options there were."""
    sharding: tuple[Sharding, ...] = ()
    """How several cards hold what one does not: the script as it is, then, where nothing fits, the
    closest."""
