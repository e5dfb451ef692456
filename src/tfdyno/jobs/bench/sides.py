"""The sides of a bench, one recipe or A and B: whose run is next, and what joins which."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError
from tfdyno.core.measure.measurement import Measurement
from tfdyno.core.measure.software import Backend
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.model.measure.summary import summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.measurement import Measured, Protocol
    from tfdyno.core.recipe.retreat import Retreat

_SAME_TASK = ("title", "mode", "parameter_count", "inputs", "policy", "execution", "batch_size",
              "replica_count", "backend")  # fmt: skip
SAME_PLACE = ("device", "cards", "driver", "cuda", "cudnn", "tensorflow", "keras", "jax", "python",
               "system", "host", "container_image", "cpu", "cpu_count")  # fmt: skip
"""What all runs of a measurement have in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the recipes, and what is measured of it so far."""

    id: str
    session: str
    recipe: Recipe
    backend: Backend = "tensorflow"
    name: str = ""
    """``A``, ``B``; empty where there is one side only."""
    so_far: Measurement | None = None

    @property
    def count(self) -> int:
        """Runs so far."""
        return len(self.so_far.runs) if self.so_far else 0

    def measurement(self) -> Measurement:
        """Return what is measured so far; there is a run."""
        assert self.so_far
        return self.so_far


def new_sides(asked: Sequence[tuple[Recipe, Backend]]) -> list[Side]:
    """Return one side, or A and B of a session."""
    session, names = secrets.token_hex(6), "AB" if len(asked) > 1 else [""]
    return [
        Side(id=secrets.token_hex(6), session=session, recipe=recipe, backend=backend, name=name)
        for (recipe, backend), name in zip(asked, names, strict=True)
    ]


def next_turn(sides: Sequence[Side], protocol: Protocol) -> int | None:
    """Say whose run is next: A B B A A B B A ...; None when all are done."""
    counts = [side.count for side in sides]
    if min(counts) == max(counts) >= protocol.least_runs:
        enough = counts[0] >= protocol.most_runs
        if enough or all(_narrow(side, protocol) for side in sides):
            return None
    if len(sides) == 1:
        return 0
    pair, second = divmod(sum(counts), 2)
    return (pair + second) % 2


def _narrow(side: Side, protocol: Protocol) -> bool:
    """Return whether the interval of the median is as narrow as the protocol wants it."""
    found = summary(side.measurement())
    low_s, high_s = found.interval_s
    return (high_s - low_s) / 2 <= protocol.target_ratio * found.median_s


def check_same(so_far: Measurement, found: Measured) -> None:
    """Refuse to mix runs of another model or machine.

    Raises:
        ToolError: Something that decides the speed is not as it was; names it.
    """
    taken = [_taken(one) for one in (so_far.task.retreats, found.task.retreats)]
    if taken[0] != taken[1]:
        raise ToolError(
            f"this run cannot join the {len(so_far.runs)} before it",
            why=f"XLA compiled those {taken[0]}, and failed to compile this one, which ran "
                f"{taken[1]}",
            remedy="start a new bench; --set execution=graph measures without XLA",
        )  # fmt: skip
    nouns = ((so_far.task, found.task, _SAME_TASK),
             (so_far.environment, found.environment, SAME_PLACE))  # fmt: skip
    for before, now, names in nouns:
        for name in names:
            if getattr(before, name) != getattr(now, name):
                raise ToolError(
                    f"this run cannot join the {len(so_far.runs)} before it",
                    why=f"{name} was {getattr(before, name)} and is {getattr(now, name)}",
                    remedy="start a new bench without --resume",
                )


def _taken(retreats: Sequence[Retreat]) -> str:
    return " and ".join(one.words for one in retreats) or "as asked"
