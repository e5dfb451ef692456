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
    from collections.abc import Iterable, Iterator, Sequence

_FRONT = 4000
"""Choices followed at a time; beyond it, those that differ least are dropped."""
_SEARCH = 1000
"""The peak of a cut is least to a thousandth of what the whole model keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A stretch of the forward pass."""

    name: str = ""
    """The name of the block it belongs to; empty: it cannot be recomputed."""
    kept_bytes: int
    """What its gradient reads, and what it passes on."""
    passed_bytes: int = 0
    """What other parts read of it; it stays either way."""
    forward_flops: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOperation:
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
    """Return most bytes of activations at a time where the blocks of these names are recomputed."""
    names = frozenset(chosen)
    held = most = 0
    for part in parts:
        most = max(most, held + part.kept_bytes)
        held += part.passed_bytes if part.name in names else part.kept_bytes
    return most


def flops(parts: Sequence[Part], chosen: Iterable[str]) -> float:
    """Return the floating-point operations of computing these blocks once more."""
    names = frozenset(chosen)
    return sum(part.forward_flops for part in parts if part.name in names)


def blocks(parts: Sequence[Part]) -> frozenset[str]:
    """Return names of all blocks that can be recomputed."""
    return frozenset(part.name for part in parts if part.name)


def cheapest(parts: Sequence[Part], budget_bytes: float) -> frozenset[str] | None:
    """Return the blocks with the fewest operations that keep the peak within a budget.

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
    """Return those that no other beats in both bytes and operations."""
    best: list[tuple[int, float, frozenset[str]]] = []
    for each in sorted(found, key=lambda each: (each[0], each[1])):
        if not best or each[1] < best[-1][1]:
            best.append(each)
    if len(best) <= _FRONT:
        return best
    stride = -(-len(best) // _FRONT)
    return [*best[:-1:stride], best[-1]]  # the fewest bytes and the fewest operations stay


def segments(
    steps: Sequence[ModelOperation], results: Iterable[int], *, wanted: bool = False
) -> list[Segment]:
    """Cut a functional model by what its operations keep, so that the peak is least.

    Tried are cuts where few tensors pass. Of n like operations in a chain the least peak is that of
    about √(2n) at once: segments hold the fewer, the more lies before them.

    Args:
        steps: All operations in their order.
        results: Tensors that the model gives.
        wanted: Whether what may be recomputed is, also where no cut lowers the peak.

    Returns:
        The segments in their order; operations between them are computed once. Without any, no
        cut lowers the peak.
    """
    last_use = _last_uses(steps, frozenset(results))
    counts = [_passing(steps, last_use, n) for n in range(len(steps) + 1)]
    least = peak_bytes(all_parts(steps, ()), ())
    everywhere = frozenset(range(len(counts)))
    best = (_cut_within(steps, last_use, everywhere, least) or []) if wanted else []
    for most in sorted(set(counts))[:4]:
        places = [n for n, count in enumerate(counts) if count <= most or n == len(steps)]
        cut = _least_cut(steps, last_use, frozenset(places), least)
        peak = peak_bytes(all_parts(steps, cut), {each.part.name for each in cut})
        if peak < least:
            least, best = peak, cut
    return best


def _least_cut(
    steps: Sequence[ModelOperation], last_use: dict[int, int], places: frozenset[int], total: int
) -> list[Segment]:
    """Return the cut with the least peak, to a part in ``_SEARCH``; it lies at ``places`` only."""
    found: list[Segment] = []
    low, high = 0, total
    while high - low > total // _SEARCH:
        middle = (low + high) // 2
        cut = _cut_within(steps, last_use, places, middle)
        if cut is None:
            low = middle + 1
        else:
            found, high = cut, middle
    return found


def all_parts(steps: Sequence[ModelOperation], cut: Sequence[Segment]) -> list[Part]:
    """Return the forward pass as parts: the segments, and each operation between them."""
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


def _last_uses(steps: Sequence[ModelOperation], results: frozenset[int]) -> dict[int, int]:
    """Map each tensor to the last operation that reads it; results are read after all."""
    uses = {tensor: n for n, step in enumerate(steps) for tensor in step.reads}
    return {**uses, **dict.fromkeys(results, len(steps))}


def _passing(steps: Sequence[ModelOperation], last_use: dict[int, int], cut: int) -> int:
    """Return how many tensors made before operation ``cut`` are read at it or later."""
    made = (tensor for step in steps[:cut] for tensor, _ in step.makes)
    return sum(last_use.get(tensor, -1) >= cut for tensor in made)


def _cut_within(
    steps: Sequence[ModelOperation],
    last_use: dict[int, int],
    places: frozenset[int],
    budget_bytes: int,
) -> list[Segment] | None:
    """Return the cut whose parts hold least after all of them, with no peak above a budget.

    What is held before an operation is never worth more than less, so the least of each prefix is
    enough to know. None: no cut keeps within the budget.
    """
    held: list[int | None] = [0]
    taken: list[Segment | None] = [None]
    for last, step in enumerate(steps, 1):
        before = held[last - 1]
        alone = None if before is None else before + step.kept_bytes
        best, segment = (None if alone is None or alone > budget_bytes else alone), None
        for each in _ending_at(steps, last_use, last, budget_bytes) if last in places else ():
            start = held[each.first] if each.first in places else None
            if start is None or start + each.part.kept_bytes > budget_bytes:
                continue
            after = start + each.part.passed_bytes
            if each.part.passed_bytes < each.part.kept_bytes and (best is None or after < best):
                best, segment = after, each
        held.append(best)
        taken.append(segment)
    return None if held[-1] is None else _followed(taken)


def _ending_at(
    steps: Sequence[ModelOperation], last_use: dict[int, int], last: int, budget_bytes: int
) -> Iterator[Segment]:
    """Find stretches up to an operation, shortest first, that keep no more than a budget."""
    kept = passed = 0
    cost = 0.0
    for first in range(last - 1, -1, -1):
        step = steps[first]
        kept += step.kept_bytes
        if not step.allowed or kept > budget_bytes:
            return
        passed += sum(size for tensor, size in step.makes if last_use.get(tensor, -1) >= last)
        cost += step.forward_flops
        name = step.name if first == last - 1 else f"{step.name}..{steps[last - 1].name}"
        part = Part(name=name, kept_bytes=kept, passed_bytes=passed, forward_flops=cost)
        yield Segment(first=first, last=last, part=part)


def _followed(taken: Sequence[Segment | None]) -> list[Segment]:
    """Return the segments that lead to the end, in their order."""
    found: list[Segment] = []
    n = len(taken) - 1
    while n > 0:
        segment = taken[n]
        if segment is not None:
            found.append(segment)
        n = segment.first if segment else n - 1
    return found[::-1]
