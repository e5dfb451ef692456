"""The cells of the matrix: every combination of settings, and the recipe that asks for it."""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from composition_matrix.pairs import covering
from tfdyno.core.base.errors import UsageError
from tfdyno.core.messages.child import Child, Nothing
from tfdyno.core.recipe.composition import check_composition
from tfdyno.core.recipe.recipe import Recipe, from_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

STRATEGIES = ("single", "mirrored", "multiworker", "ps")
AXES: dict[str, tuple[Any, ...]] = {
    "strategy": STRATEGIES,
    "precision": ("float32", "mixed_bfloat16", "mixed_float16"),
    "execution": ("graph", "xla"),
    "accumulation": (1, 4),
    "remat": ("", "blocks"),
    "ema": (0.0, 0.9),
    "steps_per_execution": (1, 4),
}
EMA_OVERWRITE = 2
"""Updates after which the average replaces the weights, where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cell:
    """One combination; the fields are settings of ``Recipe``."""

    strategy: str
    precision: str
    execution: str
    accumulation: int
    remat: str
    ema: float
    steps_per_execution: int

    @property
    def name(self) -> str:
        """Short and unique: ``mirrored-bfloat16-xla-acc4-remat-ema-spe4``."""
        parts = [
            self.strategy,
            self.precision.removeprefix("mixed_"),
            self.execution,
            f"acc{self.accumulation}",
            *(["remat"] if self.remat else []),
            *(["ema"] if self.ema else []),
            f"spe{self.steps_per_execution}",
        ]
        return "-".join(parts)

    @property
    def settings(self) -> dict[str, Any]:
        """Names and values as ``--set`` takes them."""
        more = {"ema_overwrite": EMA_OVERWRITE} if self.ema else {}
        return {**asdict(self), **more, "seed": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainCells:
    """What a child is asked: to train these cells, all of one strategy."""

    side: str
    """``tfdyno`` or ``keras``."""
    cells: tuple[Cell, ...]


CELLS = Child(module="composition_matrix.child", request=TrainCells, result=Nothing)


def all_cells() -> tuple[Cell, ...]:
    """Every combination, cells of one strategy after each other."""
    return tuple(_cell(values) for values in itertools.product(*AXES.values()))


def pairwise_cells() -> tuple[Cell, ...]:
    """Few cells in which every two values of two settings meet, if a run can have both."""
    return tuple(_cell(row) for row in covering(tuple(AXES.values()), lambda v: not _refuses(v)))


def refused_pairs() -> tuple[Cell, ...]:
    """One cell for every two values that no run can have together."""
    names, found = list(AXES), []
    plain = [values[0] for values in AXES.values()]
    for one, two in itertools.combinations(range(len(names)), 2):
        for a, b in itertools.product(AXES[names[one]], AXES[names[two]]):
            row = list(plain)
            row[one], row[two] = a, b
            if _refuses(row):
                found.append(_cell(row))
    return tuple(found)


def recipe_of(cell: Cell) -> Recipe:
    """The recipe of a cell."""
    return from_settings(cell.settings)


def refusal(cell: Cell) -> str:
    """Why no run can have these settings together; empty where one can."""
    try:
        check_composition(recipe_of(cell))
    except UsageError as error:
        return f"{error.what}: {error.why}"
    return ""


def _cell(values: Sequence[Any]) -> Cell:
    return Cell(**dict(zip(AXES, values, strict=True)))


def _refuses(values: Sequence[Any]) -> bool:
    return bool(refusal(_cell(values)))
