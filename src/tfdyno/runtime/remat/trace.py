"""What the backward pass of a Keras model reads, counted on a traced step that never runs.

The step is traced into a graph of its own, with the batch that is asked for. Counted are the
tensors of the forward pass that operations of the gradient read: those that TensorFlow's executor
keeps. XLA may keep less, as it computes cheap operations again on its own. A loop (a recurrent
layer without unrolling) keeps what it pushes in each turn, as many as its input has steps.
"""

from __future__ import annotations

import contextlib
import functools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfdyno.runtime.base.tensorflow_internals import loop_body
from tfdyno.runtime.remat.functional import Functional, float_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tfdyno.core.base.untyped import Function, Graph, Model, Operation, Shape, Tensor, Value

_VIEWS = frozenset(
    "Reshape Identity IdentityN ExpandDims Squeeze StopGradient PreventGradient Snapshot".split()
)
"""Operations whose result is the memory of their first input."""
_SOURCES = frozenset("Const Placeholder ReadVariableOp VarHandleOp".split())
_OTHERS = frozenset("Const ReadVariableOp TensorListGetItem".split())
"""Operations in a loop whose results are the memory of a weight or of the loop's input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One call of a layer, or one operation of a functional model."""

    key: Any
    """``id`` of the layer, or ``(id of the functional model, number of the operation)``."""
    first: int
    last: int
    """Operations of the graph, one past the last."""
    passed_bytes: int


@dataclass(slots=True)
class Traced:
    """Bytes and floating-point operations along the forward pass."""

    spans: list[Span] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    """Bytes that the operations before this one keep for the backward pass."""
    flops: list[float] = field(default_factory=list)
    """Operations of the forward pass before this one."""
    step_flops: float = 0.0
    """FLOPs of forward and backward pass."""

    def kept_bytes(self, first: int, last: int) -> int:
        """Return what a stretch of the forward pass keeps."""
        return self.kept[last] - self.kept[first]

    def forward_flops(self, first: int, last: int) -> float:
        """Return what a stretch of the forward pass computes."""
        return self.flops[last] - self.flops[first]

    @property
    def length(self) -> int:
        """Operations of the forward pass."""
        return len(self.kept) - 1


def trace(
    model: Model,
    inputs: Tensor,
    layers: Sequence[Any],
    functionals: Sequence[Functional],
) -> Traced:
    """Trace forward and backward pass of a model on symbolic inputs.

    Args:
        model: A built Keras model.
        inputs: Its inputs as ``tf.TensorSpec`` with known shapes, nested as it takes them.
        layers: Whose calls are wanted as spans.
        functionals: Whose operations are wanted as spans.
    """
    found = Traced()
    graph = tf.__internal__.FuncGraph("remat_trace")
    with contextlib.ExitStack() as stack:
        stack.enter_context(keras.StatelessScope(initialize_variables=False))
        stack.enter_context(graph.as_default())
        tape = stack.enter_context(tf.GradientTape())
        stack.enter_context(_watched(layers, functionals, found.spans, graph))
        stand_ins = keras.tree.map_structure(
            lambda x: tf.compat.v1.placeholder(x.dtype, x.shape), inputs
        )
        outputs = model(stand_ins, training=True)
        last = _position(graph)
        results = [x for x in keras.tree.flatten(outputs) if x.dtype.is_floating]
        weights = list(tape.watched_variables())
        tape.gradient(results, weights)
    sizes = [x.shape[0] for x in keras.tree.flatten(inputs) if x is not None and x.shape.rank]
    _count(found, graph.get_operations(), last, sizes[0] if sizes else 1)
    return found


@contextlib.contextmanager
def _watched(
    layers: Sequence[Any],
    functionals: Sequence[Functional],
    spans: list[Span],
    graph: Graph,
) -> Iterator[None]:
    """Note where each call begins and ends in the graph."""

    def watch(key: object, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Value:
            first = _position(graph)
            outputs = function(*args, **options)
            size = sum(float_bytes(x) for x in keras.tree.flatten(outputs) if tf.is_tensor(x))
            spans.append(Span(key=key, first=first, last=_position(graph), passed_bytes=size))
            return outputs

        return call

    try:
        for layer in layers:
            vars(layer)["call"] = watch(id(layer), layer.call)
        for functional in functionals:
            functional.install(functools.partial(_by_number, watch, functional.key))
        yield
    finally:
        for layer in layers:
            vars(layer).pop("call", None)
        for functional in functionals:
            functional.remove()


def _by_number(watch: Value, key: int, number: int, function: Function) -> Value:
    return watch((key, number), function)


def _position(graph: Graph) -> int:
    return len(graph.get_operations())


def _count(found: Traced, operations: Sequence[Any], last: int, batch_size: int) -> None:
    """Fill in what each operation of the forward pass keeps and computes.

    The batch stands where an operation forgets it, as those of strings do.
    """
    place = {operation.name: n for n, operation in enumerate(operations)}
    kept = [0] * last
    seen = set()
    for operation in operations[last:]:
        for tensor in operation.inputs:
            root = _root(tensor)
            number = place[root.op.name]
            if number < last and root.name not in seen and not _is_source(root.op):
                seen.add(root.name)
                kept[number] += _bytes(root, batch_size)
    costs = [_flops(operation, batch_size) for operation in operations]
    found.kept, found.flops = _sums(kept), _sums(costs[:last])
    found.step_flops = sum(costs)


def _sums(amounts: Sequence[Any]) -> list[Any]:
    sums = [0]
    for amount in amounts:
        sums.append(sums[-1] + amount)
    return sums


def _root(tensor: Tensor) -> Value:
    """Return the tensor whose memory a tensor shows."""
    while tensor.op.type in _VIEWS and tensor.op.inputs:
        tensor = tensor.op.inputs[tensor.value_index if tensor.op.type == "IdentityN" else 0]
    return tensor


def _is_source(operation: Operation) -> bool:
    return operation.type in _SOURCES


def _elements(shape: Shape, batch_size: int) -> int:
    """Count a shape's elements; the batch stands for an unknown first dimension, 1 for others."""
    dims = shape.as_list() if shape.rank is not None else [0]
    return math.prod((1 if n else batch_size) if x is None else x for n, x in enumerate(dims))


def _bytes(tensor: Tensor, batch_size: int) -> int:
    if tensor.dtype == tf.variant and tensor.op.type in ("While", "StatelessWhile"):
        return _pushed_bytes(tensor, batch_size)
    size = getattr(tensor.dtype, "size", 0)
    return _elements(tensor.shape, batch_size) * size if tensor.dtype != tf.resource else 0


def _pushed_bytes(tensor: Tensor, batch_size: int) -> int:
    """Return what a loop keeps in a list that its gradient reads; 0: nobody knows how often."""
    body = loop_body(tensor.op)
    push = body.outputs[tensor.value_index].op
    if push.type != "TensorListPushBack" or push.inputs[1].op.type in _OTHERS:
        return 0
    made = [x.op for x in tensor.op.inputs if x.op.type == "TensorListFromTensor"]
    turns = max((op.inputs[0].shape[0] or 0 for op in made), default=0)
    return int(turns * _bytes(push.inputs[1], batch_size))


def _flops(operation: Operation, batch_size: int = 1) -> float:
    """Count floating-point operations: two for each multiplication with its sum, else one."""
    shapes = [x.shape for x in operation.inputs]
    outputs = [x for x in operation.outputs if x.dtype.is_floating]
    if not outputs or operation.type in _VIEWS | _SOURCES or any(s.rank is None for s in shapes):
        return 0.0
    size = float(_elements(outputs[0].shape, batch_size))
    kind = operation.type
    if kind in ("MatMul", "BatchMatMulV2", "BatchMatMul"):
        turned = operation.get_attr("transpose_a" if kind == "MatMul" else "adj_x")
        return 2.0 * size * (shapes[0][-2 if turned else -1] or 0)
    if kind == "Einsum":
        return 2.0 * _einsum(operation.get_attr("equation").decode(), shapes)
    if kind.startswith(("Conv2D", "Conv3D", "DepthwiseConv2d")):
        filters = outputs[0].shape if "BackpropFilter" in kind else shapes[0 if "x" in kind else 1]
        if "Backprop" in kind:
            size = float(_elements(operation.inputs[2].shape, batch_size))
        return _convolution(kind, operation, filters, size)
    return size


def _einsum(equation: str, shapes: Sequence[Any]) -> float:
    """Count the products of an einsum: the sizes of all its letters."""
    sizes: dict[str, int] = {}
    for letters, shape in zip(equation.split("->")[0].split(","), shapes, strict=True):
        dims = shape.as_list()
        before, _, after = letters.partition("...")
        sizes |= dict(zip(before, dims, strict=False))
        sizes |= dict(zip(reversed(after), reversed(dims), strict=False))
        if "..." in letters:
            middle = dims[len(before) : len(dims) - len(after)]
            sizes["..."] = max(sizes.get("...", 1), math.prod(dim or 0 for dim in middle))
    return float(math.prod(size or 0 for size in sizes.values()))


def _convolution(kind: str, operation: Operation, filters: Value, size: float) -> float:
    """Return two for each weight that goes into each output of the forward convolution."""
    if "BackpropInput" in kind:
        filters = operation.inputs[1].shape
    per_output = math.prod(dim or 0 for dim in filters.as_list()[:-1])
    if kind.startswith("Depthwise"):
        per_output = math.prod(dim or 0 for dim in filters.as_list()[:2])
    return 2.0 * size * per_output
