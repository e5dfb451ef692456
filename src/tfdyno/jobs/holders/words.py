"""Who holds a card, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.words.base.amounts import capital, listed
from tfdyno.words.base.language import ENGLISH, answering

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.base.interval import Interval
    from tfdyno.probe.holders.cards import HeldCard, Holder

NAMED = 4
"""So many processes are named; the others are counted."""


def sentence(card: HeldCard) -> str:
    """Return what is free of a card, and who holds the rest; without a stop at its end."""
    return f"{free_words(card)}: {holder_words(card)}"


def free_words(card: HeldCard) -> str:
    """Write ``GPU 0 has 3 GiB of 80 GiB of memory free``."""
    if card.free_bytes is None:
        return f"how much memory {card.place} has free is not told by the driver"
    free, total = format_bytes(card.free_bytes), format_bytes(card.total_bytes)
    return f"{card.place} has {free} of {total} of memory free"


def holder_words(card: HeldCard) -> str:
    """Return who holds the rest: the largest by name and identifier."""
    if card.holders is None:
        return "the driver does not tell which processes hold the rest"
    if not card.holders:
        return "no process is shown that holds the rest, so one of another container or user does"
    return f"{names(card.holders)} {'holds' if len(card.holders) == 1 else 'hold'} the rest"


def names(holders: Sequence[Holder]) -> str:
    """Return the largest by name and identifier, and how many more there are."""
    told = [_one(one) for one in holders[:NAMED]]
    if len(holders) > NAMED:
        told.append(f"{len(holders) - NAMED} more")
    with answering(ENGLISH):  # as the sentences round it, which errors and records hold
        return listed(told)


def blame(held: Iterable[HeldCard]) -> str:
    """Write ``meanwhile python other.py (4711, 60 GiB) held memory of GPU 0``, card by card."""
    told = [
        f"{names(one.holders)} held memory of {one.place}"
        if one.holders
        else f"others held {format_bytes(one.total_bytes - (one.free_bytes or 0))} of {one.place}"
        for one in held
    ]
    return f"meanwhile {' and '.join(told)}"


def need_words(need: Interval, held: Sequence[HeldCard]) -> str:
    """Say how what the run takes by estimate compares with what is free; empty: nothing to say."""
    free = min((one.free_bytes for one in held if one.free_bytes is not None), default=None)
    if free is None or need.high <= free:
        return ""
    span = f"{format_bytes(need.low)} to {format_bytes(need.high)}"
    surely = "is more than is free" if need.low > free else "may be more than is free"
    return f"The estimate of what this run takes, {span}, {surely}."


def growth_words(setting: str) -> str:
    """Say that memory is taken step by step."""
    return f"So this run takes memory only as it needs it ({setting})."


def trouble_words(trouble: str) -> str:
    """Say that it is not known who holds a card."""
    return f"Who holds the memory of the GPU is not known: NVML does not answer ({trouble})."


def told(parts: Iterable[str]) -> str:
    """Return sentences in one line."""
    return " ".join(capital(part if part.endswith(".") else f"{part}.") for part in parts if part)


def _one(holder: Holder) -> str:
    size = f", {format_bytes(holder.memory_bytes)}" if holder.memory_bytes else ""
    if not holder.name:
        return f"a process of another container or user ({holder.pid}{size})"
    of = f" of {holder.user}" if holder.user else ""
    return f"{holder.name}{of} ({holder.pid}{size})"
