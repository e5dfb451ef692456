"""How often a StableHLO ``while`` loop runs, where its condition tells."""

from __future__ import annotations

from collections.abc import Callable

from jaxlib.mlir import ir

COUNTERS = frozenset({"tensor<i32>", "tensor<i64>"})
ScalarOf = Callable[[ir.Value], int | None]


def trip_count(loop: ir.Operation, scalar_of: ScalarOf) -> int | None:
    """Return trips of a counter that starts, steps and ends at known numbers; ``None`` if unknown.

    ``scalar_of`` answers for values of the region around. A condition joined by ``and`` ends the
    loop at the first of its parts that fails.
    """
    condition = loop.regions[0].blocks[0]
    last = list(condition.operations)[-1].operation
    return _trips(_owner(last.operands[0]), _Loop(loop, scalar_of))


def final_counters(loop: ir.Operation, scalar_of: ScalarOf) -> dict[int, int]:
    """Return what a loop's counters among its results hold after it, by position, where known."""
    trips, about = trip_count(loop, scalar_of), _Loop(loop, scalar_of)
    if trips is None:
        return {}
    found = {}
    for position, initial in enumerate(about.initial):
        if str(initial.type) not in COUNTERS:
            continue
        start, step = scalar_of(initial), about.step(position)
        if start is not None and step is not None:
            found[position] = start + trips * step
    return found


class _Loop:
    def __init__(self, loop: ir.Operation, scalar_of: ScalarOf) -> None:
        self.initial = list(loop.operands)
        self.condition = loop.regions[0].blocks[0]
        self.body = loop.regions[1].blocks[0]
        self.returned = list(list(self.body.operations)[-1].operation.operands)
        self.scalar_of = scalar_of

    def carried(self, value: ir.Value, block: ir.Block) -> int | None:
        """Return which carried value this is, if it is an argument of the block."""
        if isinstance(value, ir.BlockArgument) and value.owner == block:
            return int(value.arg_number)
        return None

    def number(self, value: ir.Value, block: ir.Block) -> int | None:
        """Return the integer a value holds in every trip, if known."""
        position = self.carried(value, block)
        if position is not None:
            unchanged = self.carried(self.returned[position], self.body) == position
            return self.scalar_of(self.initial[position]) if unchanged else None
        owner = _owner(value)
        if owner is None:
            return self.scalar_of(value)
        if owner.name == "stablehlo.constant":
            return _scalar(owner)
        if owner.name in {"stablehlo.convert", "stablehlo.reshape"}:
            return self.number(owner.operands[0], block)
        return self.scalar_of(value)

    def step(self, position: int) -> int | None:
        """Return by how much a carried counter grows in each trip."""
        owner = _owner(self.returned[position])
        if owner is None or owner.name not in {"stablehlo.add", "stablehlo.subtract"}:
            return None
        sign = 1 if owner.name == "stablehlo.add" else -1
        left, right = owner.operands
        if self.carried(left, self.body) == position:
            other = right
        elif self.carried(right, self.body) == position and sign == 1:
            other = left
        else:
            return None
        amount = self.number(other, self.body)
        return None if amount is None else sign * amount


def _trips(test: ir.Operation | None, loop: _Loop) -> int | None:
    if test is None:
        return None
    if test.name == "stablehlo.and":
        parts = [_trips(_owner(operand), loop) for operand in test.operands]
        known = [part for part in parts if part is not None]
        return min(known) if known else None
    if test.name != "stablehlo.compare":
        return None
    direction = str(test.attributes["comparison_direction"]).split()[-1].rstrip(">")
    left, right = test.operands
    position = loop.carried(left, loop.condition)
    bound = loop.number(right, loop.condition)
    if position is None or bound is None:
        return None
    return _count(loop.scalar_of(loop.initial[position]), bound, loop.step(position), direction)


def _count(start: int | None, bound: int, step: int | None, direction: str) -> int | None:
    """Return trips of ``for (i = start; i direction bound; i += step)``."""
    if start is None or not step:
        return None
    inclusive = {"LT": 0, "GT": 0, "NE": 0, "LE": 1, "GE": -1}.get(direction)
    if inclusive is None:
        return None
    return max(0, -(-(bound + inclusive - start) // step))


def _owner(value: ir.Value) -> ir.Operation | None:
    return None if isinstance(value, ir.BlockArgument) else value.owner


def _scalar(constant: ir.Operation) -> int | None:
    value = constant.attributes["value"]
    if isinstance(value, ir.DenseIntElementsAttr) and value.type.rank == 0:
        return int(value[0])
    return None
