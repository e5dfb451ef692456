"""Steps back from a compile that fails inside XLA: what was left out, and after which fault."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

from tfdyno.core.base.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.recipe.recipe import Recipe

RetreatStep = Literal["no_triton", "no_autotuning", "graph"]
"""A step back: without Triton's matrix products; kernels taken without measuring them; without XLA.
"""
STEPS: tuple[RetreatStep, ...] = get_args(RetreatStep)
FIRST_STEP = "first step (compiling)"
"""Progress of a child that has trained nothing yet."""
FIRST_STEP_XLA = "first step (compiling with XLA)"
CRASHED = "the process crashed while XLA compiled its first step"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retreat:
    """One step back, and why it was taken."""

    step: RetreatStep
    words: str
    """What is left out: ``without Triton's matrix products``."""
    flags: tuple[str, ...] = ()
    """That were added to XLA_FLAGS."""
    fault: str = ""
    """Name of the known fault; empty: none that is known."""
    title: str = ""
    """What is wrong inside the compiler, in words."""
    references: tuple[str, ...] = ()
    """Upstream threads of the fault: ``jax-ml/jax#40237``."""
    said: str = ""
    """What the compiler said, shortened."""

    @property
    def cause(self) -> str:
        """The fault with its upstream threads, or what the compiler said of one not known."""
        if not self.title:
            return self.said or CRASHED
        named = f" ({', '.join(self.references)})" if self.references else ""
        return f"{self.title}{named}"

    @property
    def way(self) -> str:
        """What is left out, with its flags."""
        return f"{self.words} (XLA_FLAGS {' '.join(self.flags)})" if self.flags else self.words


def is_compiling(progress: str) -> bool:
    """Return whether a child whose last progress this is had XLA compile its first step."""
    if progress == FIRST_STEP_XLA:
        return True
    with contextlib.suppress(ValueError):
        told = json.loads(progress)
        return isinstance(told, dict) and told.get("event") == "begin" and bool(told.get("xla"))
    return False


def as_run(recipe: Recipe, retreats: Iterable[Retreat]) -> Recipe:
    """Return the recipe that runs after these steps back from the one that was asked for."""
    if any(one.step == "graph" for one in retreats):
        return replace(recipe, execution="graph")
    return recipe


def told_of(retreats: Sequence[Retreat]) -> str:
    """Return what was done and why, in one sentence; empty: nothing was."""
    if not retreats:
        return ""
    causes = ", then ".join(dict.fromkeys(one.cause.rstrip(".") for one in retreats))
    before = " and ".join(one.words for one in retreats[:-1])
    failed = f", as it failed {before}, too" if before else ""
    return f"XLA failed to compile it: {causes}; it ran {retreats[-1].way}{failed}."


def flags_of(retreats: Iterable[Retreat]) -> tuple[str, ...]:
    """Return what all of them add to XLA_FLAGS."""
    return tuple(flag for one in retreats for flag in one.flags)


def name_of(flag: str) -> str:
    """Return ``--xla_gpu_autotune_level`` of a flag with its value."""
    return flag.partition("=")[0]
