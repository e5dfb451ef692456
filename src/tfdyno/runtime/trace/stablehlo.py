"""StableHLO (jaxlib's MLIR bindings) -> the flat graph of ``graph.py``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, func, mhlo, stablehlo

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.kernels.graph import Graph, Node, TensorType
from tfdyno.process.failure import first_line
from tfdyno.runtime.trace.lowering import lowered
from tfdyno.runtime.trace.stablehlo_attributes import attributes_of
from tfdyno.runtime.trace.trip_count import trip_count

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.choose.program import Lowering

ALIASES = frozenset({"optimization_barrier", "tuple", "sharding_constraint"})
IGNORED_CALLS = ("Sharding", "LayoutConstraint", "annotate_device_placement", "xla.sdy")
THREEFRY = "threefry2x32"
"""What the function is called that JAX computes random bits by."""
_INTEGER = re.compile(r"^(u?)i(\d+)$")


def new_context() -> ir.Context:
    """Return an MLIR context that knows the StableHLO dialects."""
    context = ir.Context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)  # func and the other upstream dialects
    context.append_dialect_registry(registry)
    context.allow_unregistered_dialects = True
    stablehlo.register_dialect(context)
    chlo.register_dialect(context)
    mhlo.register_mhlo_dialect(context)  # what HLO from TensorFlow still holds
    context.load_all_available_dialects()
    return context


def read_module(path: Path) -> ir.Module:
    """Parse a StableHLO file: text, MLIR bytecode or a portable artifact.

    Raises:
        UsageError: The file is not StableHLO.
    """
    context = new_context()
    data = path.read_bytes()
    try:
        if data[:4] == b"ML\xefR" and b"StableHLO_v" in data[:64]:
            return stablehlo.deserialize_portable_artifact(context, data)
        return ir.Module.parse(data, context)
    except (ir.MLIRError, ValueError) as error:
        raise UsageError(f"{path} is not StableHLO", why=first_line(error)) from None


def read_graph(module: ir.Module, lowering: Lowering = "before") -> Graph:
    """Flatten the function ``main`` of a module, which becomes the program of ``lowering``.

    Raises:
        ToolError: The module has no ``main``, or a tensor of unknown size.
    """
    reader = _Reader(module, lowering)
    if "main" not in reader.functions:
        raise ToolError("the traced program has no main function")
    block = reader.functions["main"].regions[0].blocks[0]
    for argument in block.arguments:
        (value,) = reader.graph.add("argument", (), [reader.type_of(argument)])
        reader.values[argument] = value
        reader.graph.arguments.append(value)
    reader.graph.outputs = reader.read(block, _Place("", 1, 0))
    return reader.graph if lowering == "before" else lowered(reader.graph)


class _Place:
    """Where the reader stands: location of the calls around, trips, region."""

    __slots__ = ("prefix", "repeats", "scope")

    def __init__(self, prefix: str, repeats: int, scope: int) -> None:
        self.prefix, self.repeats, self.scope = prefix, repeats, scope


class _Reader:
    def __init__(self, module: ir.Module, lowering: Lowering) -> None:
        self.graph = Graph(lowering=lowering)
        self.values: dict[Any, int] = {}
        self.types: dict[Any, TensorType] = {}
        self.sizes: dict[str, int] = {}
        self.functions = {
            ir.StringAttr(item.operation.attributes["sym_name"]).value: item.operation
            for item in module.body.operations
            if isinstance(item, func.FuncOp)
        }

    def read(self, block: ir.Block, place: _Place) -> list[int]:
        """Append a block's operations; returns the values it hands back."""
        for item in block.operations:
            operation = item.operation
            name: str = operation.name
            if name in {"func.return", "stablehlo.return"}:
                return [self.values[value] for value in operation.operands]
            handler = _HANDLERS.get(name, _Reader.plain)
            results = handler(self, operation, place)
            for result, value in zip(operation.results, results, strict=True):
                self.values[result] = value
        return []

    def plain(self, operation: ir.Operation, place: _Place) -> tuple[int, ...]:
        """Return an operation that computes something."""
        name = operation.name.partition(".")[2]
        operands = tuple(self.values[value] for value in operation.operands)
        attributes = attributes_of(name, operation)
        if name == "dot":  # TensorFlow's products of two matrices; it has no other attributes
            left = ir.RankedTensorType(operation.operands[0].type).rank
            name = "dot_general"
            attributes = {"batch": ((), ()), "contract": ((left - 1,), (0,))}
        passes = name in ALIASES or attributes.get("target", "").startswith(IGNORED_CALLS)
        # JAX converts the operands of a product of two types, also one that has the type already
        passes |= name == "convert" and operation.results[0].type == operation.operands[0].type
        if passes and len(operands) == len(operation.results):
            return operands
        types = [self.type_of(result) for result in operation.results]
        return self.append(name, operands, types, operation, place, attributes)

    def select_and_scatter(self, operation: ir.Operation, place: _Place) -> tuple[int, ...]:
        """Run pooling's gradient as GPUs do: find each window's element, then add there."""
        data, source, initial = (self.values[value] for value in operation.operands)
        found = self.graph.values[source].type
        rank = len(found.shape)
        indices = TensorType(found.shape, found.dtype, found.element_bits + 32 * rank)
        attributes = attributes_of("select_and_scatter", operation)
        index = self.append("select_window", (data,), [indices], operation, place, attributes)
        kept, result = (index[0], source, initial), [self.type_of(operation.results[0])]
        return self.append("select_and_scatter", kept, result, operation, place, attributes)

    def append(
        self,
        name: str,
        operands: tuple[int, ...],
        types: list[TensorType],
        operation: ir.Operation,
        place: _Place,
        attributes: dict[str, Any],
    ) -> tuple[int, ...]:
        """Add a node for an operation that stands at ``place``."""
        return self.graph.add(
            name,
            operands,
            types,
            location=_join(place.prefix, _location(operation.location)),
            repeats=place.repeats,
            scope=place.scope,
            attributes=attributes,
        )

    def call(self, operation: ir.Operation, place: _Place) -> tuple[int, ...]:
        """Read a function call or a composite: its body, in place."""
        if self.graph.lowering == "tensorflow" and _callee(operation).startswith(THREEFRY):
            return self.random_bits(operation, place)
        body = self.functions[_callee(operation)].regions[0].blocks[0]
        for argument, operand in zip(body.arguments, operation.operands, strict=True):
            self.values[argument] = self.values[operand]
        prefix = _join(place.prefix, _location(operation.location))
        return tuple(self.read(body, _Place(prefix, place.repeats, place.scope)))

    def random_bits(self, operation: ir.Operation, place: _Place) -> tuple[int, ...]:
        """Read JAX's Threefry as TensorFlow's generator: one kernel writes the bits used.

        JAX's numbers of 32 bits are the exclusive or of both results: only one of them is needed.
        """
        key = tuple(self.values[value] for value in operation.operands[:2])
        types = [self.type_of(result) for result in operation.results]
        readers = {use.owner for result in operation.results for use in result.uses}
        one = len(readers) == 1 and next(iter(readers)).name == "stablehlo.xor"
        bits = self.append(
            "rng_bit_generator", key, types[:1] if one else types, operation, place, {}
        )
        return bits * len(types) if one else bits

    def branch(self, operation: ir.Operation, place: _Place) -> tuple[int, ...]:
        """Take of ``case`` and ``if`` the branch with most operations."""
        region = max(operation.regions, key=self.region_size)
        prefix = _join(place.prefix, _location(operation.location))
        return tuple(self.read(region.blocks[0], self.inside(prefix, place.repeats)))

    def loop(self, operation: ir.Operation, place: _Place) -> tuple[int, ...]:
        """Take ``while``'s body once, with the trips counted; carried values are fed back."""
        trips = trip_count(operation, self.scalar_of)
        if trips is None:
            self.graph.notes.append("A loop whose trip count is unknown was counted once.")
        prefix = _join(place.prefix, _location(operation.location))
        inside = self.inside(prefix, place.repeats * (1 if trips is None else trips))
        body = operation.regions[1].blocks[0]
        states: list[Node] = []
        for argument, operand in zip(body.arguments, operation.operands, strict=True):
            (value,) = self.graph.add(
                "loop_state",
                (self.values[operand],),
                [self.type_of(argument)],
                location=prefix,
                repeats=inside.repeats,
                scope=inside.scope,
            )
            self.values[argument] = value
            states.append(self.graph.nodes[-1])
        returned = self.read(body, inside)
        for state, value in zip(states, returned, strict=True):
            state.attributes["feedback"] = value
        return tuple(
            self.graph.add(
                "loop_result",
                (value,),
                [self.graph.values[value].type],
                location=prefix,
                repeats=place.repeats,
                scope=place.scope,
            )[0]
            for value in returned
        )

    def inside(self, prefix: str, repeats: int) -> _Place:
        """Return a region of its own."""
        self.graph.scopes += 1
        return _Place(prefix, repeats, self.graph.scopes - 1)

    def region_size(self, region: ir.Region) -> int:
        """Return how many operations a region holds, called functions included."""
        return sum(
            1
            + sum(self.region_size(inner) for inner in item.operation.regions)
            + (self.function_size(_callee(item.operation)) if _is_call(item.operation) else 0)
            for block in region.blocks
            for item in block.operations
        )

    def function_size(self, name: str) -> int:
        """Return how many operations a function holds."""
        if name not in self.sizes:
            self.sizes[name] = self.region_size(self.functions[name].regions[0])
        return self.sizes[name]

    def scalar_of(self, value: ir.Value) -> int | None:
        """Return the integer that a value of the outer region is known to hold."""
        index = self.values.get(value)
        while index is not None:
            node = self.graph.producer(index)
            if node.op == "constant":
                scalar: int | None = node.attributes.get("scalar")
                return scalar
            index = node.operands[0] if node.op in {"convert", "reshape"} else None
        return None

    def type_of(self, value: ir.Value) -> TensorType:
        """Return the type of an MLIR value; tokens count as empty."""
        kind = value.type
        found = self.types.get(kind)
        if found is None:
            found = self.types[kind] = _tensor_type(kind)
        return found


_HANDLERS = {
    "func.call": _Reader.call,
    "stablehlo.composite": _Reader.call,
    "stablehlo.case": _Reader.branch,
    "stablehlo.if": _Reader.branch,
    "stablehlo.while": _Reader.loop,
    "stablehlo.select_and_scatter": _Reader.select_and_scatter,
}


def _is_call(operation: ir.Operation) -> bool:
    return operation.name in {"func.call", "stablehlo.composite"}


def _callee(operation: ir.Operation) -> str:
    key = "callee" if operation.name == "func.call" else "decomposition"
    name: str = ir.FlatSymbolRefAttr(operation.attributes[key]).value
    return name


def _tensor_type(kind: ir.Type) -> TensorType:
    if not isinstance(kind, ir.RankedTensorType):
        return TensorType((0,), "token", 0)
    if not kind.has_static_shape:
        raise ToolError(f"the traced program has a tensor of unknown size ({kind})")
    dtype, bits = _element_type(str(kind.element_type))
    return TensorType(tuple(kind.shape), dtype, bits)


def _element_type(name: str) -> tuple[str, int]:
    """Return HLO spelling and bits of an MLIR element type; predicates take a byte."""
    integer = _INTEGER.match(name)
    if name == "i1":
        return "pred", 8
    if integer:
        return f"{'u' if integer[1] else 's'}{integer[2]}", int(integer[2])
    if name.startswith("complex"):
        bits = 2 * _element_type(name[8:-1])[1]
        return f"c{bits}", bits
    digits = re.match(r"^b?f(\d+)", name)
    return name.lower(), int(digits[1]) if digits else 32


def _location(location: ir.Location) -> str:
    while isinstance(location, ir.CallSiteLoc):
        location = location.callee
    if isinstance(location, ir.NameLoc):
        return str(location.name_str)
    if isinstance(location, ir.FusedLoc):
        return next((name for name in map(_location, location.locations) if name), "")
    return ""


def _join(prefix: str, name: str) -> str:
    if not prefix or not name:
        return prefix or name
    return name if name.startswith(prefix) else f"{prefix}/{name}"
