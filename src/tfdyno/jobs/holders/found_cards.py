"""The cards of this machine that a run can use, with what others hold of their memory."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.choose.hardware import Gpu
from tfdyno.jobs.holders.room import NEARLY_FULL_RATIO, check_room
from tfdyno.jobs.machine.knowledge import capability_of
from tfdyno.probe.cards import cards
from tfdyno.probe.holders.cards import NOBODY_RATIO

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Library


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCard:
    """One card at this moment."""

    index: int
    """The card's number as ``nvidia-smi`` counts."""
    gpu: Gpu
    """Its row of the catalogue; usable memory is what is free now, where others hold some."""
    total_bytes: int
    held_bytes: int
    """What other processes hold; 0: there are none."""
    processes: tuple[int, ...] = ()
    """Identifiers of those that compute on it."""

    @property
    def has_room(self) -> bool:
        """Whether there is memory for TensorFlow itself."""
        return self.total_bytes - self.held_bytes >= NEARLY_FULL_RATIO * self.total_bytes


def found_cards(*, visible: str | None = None) -> tuple[FoundCard, ...]:
    """Return the cards that a run of this user sees; none where there is no driver or no card.

    Args:
        visible: ``CUDA_VISIBLE_DEVICES``; this process' own when None.

    Raises:
        UsageError: A card is divided (MIG), or the catalogue does not have it.
    """
    seen = os.environ.get("CUDA_VISIBLE_DEVICES") if visible is None else visible
    with cards.opened() as nvml:
        return tuple(_found(nvml, *one) for one in (cards.handles(nvml, seen) if nvml else ()))


def count_cards(*, visible: str | None = None) -> int:
    """Count the cards that a run of this user sees, whatever they are; as ``found_cards``."""
    seen = os.environ.get("CUDA_VISIBLE_DEVICES") if visible is None else visible
    with cards.opened() as nvml:
        return len(cards.handles(nvml, seen)) if nvml else 0


def with_room(
    found: tuple[FoundCard, ...],
    *,
    visible: str | None = None,
) -> tuple[FoundCard, ...]:
    """Return the cards with room; raises ``ToolError`` without any, naming the first's holders."""
    free = tuple(one for one in found if one.has_room)
    if found and not free:
        check_room(visible)
        raise ToolError("no GPU has memory free", remedy="end what else computes on it")
    return free


def equal_cards(free: tuple[FoundCard, ...]) -> tuple[FoundCard, ...]:
    """Return the cards of one kind that train together: those that hold the most together."""
    slugs = dict.fromkeys(one.gpu.slug for one in free)
    groups = [tuple(one for one in free if one.gpu.slug == slug) for slug in slugs]
    return max(groups, key=lambda group: sum(one.gpu.usable_memory_bytes for one in group))


def _found(nvml: Library, index: int, handle: Library) -> FoundCard:
    card = cards.card(nvml, handle, lambda name: capability_of(name)[0])
    if card.mig:
        raise UsageError(
            f"GPU {index} ({card.name}) is divided into slices",
            why="NVML does not say which of them the run would get",
            remedy=f"name it with --gpu, as {card.slug or 'a100-sxm4-80gb'}:3g.40gb",
        )
    if not card.slug:
        remedy = "name the nearest of 'tfdyno gpus' with --gpu"
        raise UsageError(f"the catalogue has no {card.name or f'GPU {index}'}", remedy=remedy)
    now = cards.reading(nvml, handle)
    others = tuple(pid for pid, _ in now.processes or () if pid != os.getpid())
    held = now.memory_bytes or 0
    if not others and held < NOBODY_RATIO * card.memory_bytes:
        held = 0
    gpu = find(card.slug)
    usable = min(gpu.usable_memory_bytes, max(0, card.memory_bytes - held))
    return FoundCard(
        index=index,
        gpu=replace(gpu, usable_memory_bytes=usable) if held else gpu,
        total_bytes=card.memory_bytes,
        held_bytes=held,
        processes=others,
    )
