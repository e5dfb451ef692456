"""Which parts of a training step are worth computing twice: arithmetic only.

The model of memory, of activations alone (weights, gradients of weights and slots of the optimizer
are not in it): a forward pass is a row of parts. Each keeps for the backward pass the tensors that
the operations of its gradient read (``kept_bytes``). A part that is recomputed keeps only what
other parts read of it (``passed_bytes``), and has all of the former while its own gradient is
computed. The backward pass frees from the end, so the peak is the largest sum of what all earlier
parts hold and ``kept_bytes`` of the part in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FRONT = 4000
"""Choices followed at a time; beyond it, those that differ least are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A stretch of the forward pass."""

    name: str = ""
    """Of the block it belongs to; empty: it cannot be recomputed."""
    kept_bytes: int
    """What its gradient reads, and what it passes on."""
    passed_bytes: int = 0
    """What other parts read of it; it stays either way."""
    forward_flops: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An operation of a functional model, in the order in which they run."""

    name: str
    reads: tuple[int, ...]
    """Numbers of the tensors that it reads."""
    makes: tuple[tuple[int, int], ...]
    """Numbers of the tensors that it gives, with their bytes."""
    kept_bytes: int
    forward_flops: float = 0.0
    allowed: bool = True
    """Whether it may be recomputed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Operations ``first`` to ``last`` (one past it), recomputed together."""

    first: int
    last: int
    part: Part


def peak_bytes(parts: Sequence[Part], chosen: Iterable[str]) -> int:
    """Most bytes of activations at a time where the blocks of these names are recomputed."""
    names = frozenset(chosen)
    held = most = 0
    for part in parts:
        most = max(most, held + part.kept_bytes)
        held += part.passed_bytes if part.name in names else part.kept_bytes
    return most


def flops(parts: Sequence[Part], chosen: Iterable[str]) -> float:
    """Floating-point operations of computing these blocks once more."""
    names = frozenset(chosen)
    return sum(part.forward_flops for part in parts if part.name in names)


def blocks(parts: Sequence[Part]) -> frozenset[str]:
    """Names of all blocks that can be recomputed."""
    return frozenset(part.name for part in parts if part.name)


def cheapest(parts: Sequence[Part], budget_bytes: float) -> frozenset[str] | None:
    """The blocks with the fewest operations that keep the peak within a budget.

    A block that is called twice is recomputed both times.

    Args:
        parts: The forward pass in its order.
        budget_bytes: Most that all activations may take at a time.

    Returns:
        Their names (none, where nothing needs to be recomputed); None: no choice is enough.
    """
    if peak_bytes(parts, blocks(parts)) > budget_bytes:
        return None  # to recompute more never takes more
    front: list[tuple[int, float, frozenset[str]]] = [(0, 0.0, frozenset())]
    for part in parts:
        grown = []
        for held, cost, names in front:
            if held + part.kept_bytes > budget_bytes:
                continue
            if part.name not in names:
                grown.append((held + part.kept_bytes, cost, names))
            if part.name:
                more = cost + part.forward_flops
                grown.append((held + part.passed_bytes, more, names | {part.name}))
        front = _undominated(grown)
    return min(front, key=lambda each: (each[1], each[0]))[2] if front else blocks(parts)


def _undominated(
    found: list[tuple[int, float, frozenset[str]]],
) -> list[tuple[int, float, frozenset[str]]]:
    """Those that no other beats in both bytes and operations."""
    best: list[tuple[int, float, frozenset[str]]] = []
    for each in sorted(found, key=lambda each: (each[0], each[1])):
        if not best or each[1] < best[-1][1]:
            best.append(each)
    if len(best) <= _FRONT:
        return best
    stride = -(-len(best) // _FRONT)
    return [*best[:-1:stride], best[-1]]  # the fewest bytes and the fewest operations stay


def segments(steps: Sequence[Step], results: Iterable[int]) -> list[Segment]:
    """Cut a functional model where little passes, so that the peak is least.

    Tried are cuts where few tensors pass, and stretches of many sizes; with n like blocks of one
    size the best has about √n of them.

    Args:
        steps: All operations in their order.
        results: Tensors that the model gives.

    Returns:
        The segments in their order, none empty; operations between them are computed once.
    """
    last_use = _last_uses(steps, frozenset(results))
    counts = [_passing(steps, last_use, n) for n in range(len(steps) + 1)]
    total = sum(step.kept_bytes for step in steps if step.allowed)
    found: list[tuple[int, int, list[Segment]]] = []
    for most in sorted(set(counts))[:4]:
        for number in range(1, 65):
            cut = _cut(steps, last_use, counts, most, total / number)
            peak = peak_bytes(all_parts(steps, cut), {each.part.name for each in cut})
            found.append((peak, len(cut), cut))
    return min(found, key=lambda each: each[:2])[2] if found else []


def all_parts(steps: Sequence[Step], cut: Sequence[Segment]) -> list[Part]:
    """The forward pass as parts: the segments, and each operation between them."""
    by_first = {each.first: each for each in cut}
    parts, n = [], 0
    while n < len(steps):
        segment = by_first.get(n)
        if segment is None:
            step = steps[n]
            parts.append(Part(kept_bytes=step.kept_bytes, forward_flops=step.forward_flops))
        else:
            parts.append(segment.part)
        n = segment.last if segment else n + 1
    return parts


def _last_uses(steps: Sequence[Step], results: frozenset[int]) -> dict[int, int]:
    """By tensor: the last operation that reads it; results are read after all."""
    uses = {tensor: n for n, step in enumerate(steps) for tensor in step.reads}
    return {**uses, **dict.fromkeys(results, len(steps))}


def _passing(steps: Sequence[Step], last_use: dict[int, int], cut: int) -> int:
    """How many tensors made before operation ``cut`` are read at it or later."""
    made = (tensor for step in steps[:cut] for tensor, _ in step.makes)
    return sum(last_use.get(tensor, -1) >= cut for tensor in made)


def _cut(
    steps: Sequence[Step], last_use: dict[int, int], counts: list[int], most: int, limit: float
) -> list[Segment]:
    """Stretches of at most ``limit`` bytes kept, or one more operation than that."""
    found: list[Segment] = []
    first = size = 0
    for n, step in enumerate(steps):
        if not step.allowed:
            _close(found, steps, last_use, first, n)
            first, size = n + 1, 0
            continue
        size += step.kept_bytes
        if size >= limit and counts[n + 1] <= most:
            _close(found, steps, last_use, first, n + 1)
            first, size = n + 1, 0
    _close(found, steps, last_use, first, len(steps))
    return found


def _close(
    found: list[Segment], steps: Sequence[Step], last_use: dict[int, int], first: int, last: int
) -> None:
    """Append the segment from ``first`` to ``last`` where it keeps anything."""
    inside = steps[first:last]
    kept = sum(step.kept_bytes for step in inside)
    made = [each for step in inside for each in step.makes]
    passed = sum(size for tensor, size in made if last_use.get(tensor, -1) >= last)
    if not inside or kept <= passed:
        return  # nothing is won
    cost = sum(step.forward_flops for step in inside)
    name = inside[0].name if len(inside) == 1 else f"{inside[0].name}..{inside[-1].name}"
    part = Part(name=name, kept_bytes=kept, passed_bytes=passed, forward_flops=cost)
    found.append(Segment(first=first, last=last, part=part))
