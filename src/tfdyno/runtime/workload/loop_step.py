"""A hand-written step as a function of tensors only, with specs for them at any batch.

What a step is called with is a mixture: tensors, Python values, keyword arguments, structures, an
iterator of which it takes the next batch. Only what differs between batches becomes an argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.process.failure import user_code
from tfdyno.runtime.workload.workloads import function_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.base.untyped import Function, Value
    from tfdyno.core.choose.workload import Workload

STAND_INS = range(31, 10_000, 2)
"""Batch sizes to choose from: it must differ from every other size, to be told from them."""
_SPEC = re.compile(r"^(\w+)\[([^\]]*)\]$")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopStep:
    """A step and the tensors that it was called with."""

    function: Callable[..., Any]
    """Takes ``tensors`` (or specs of them) as positional arguments."""
    tensors: tuple[tf.TensorSpec, ...]
    batch_size: int
    """The first dimension that most of the tensors share; 0 where none has one."""
    autograph: bool
    jit: bool
    name: str

    def specs(self, batch_size: int) -> list[tf.TensorSpec]:
        """Return the specs with another batch; 0 keeps the script's."""
        return [_resized(spec, self.batch_size, batch_size) for spec in self.tensors]

    def dimensions(self) -> set[int]:
        """Return all sizes but the batch."""
        shapes = [spec.shape.as_list() for spec in self.tensors]
        return {
            size
            for shape in shapes
            for size in (shape[1:] if shape[:1] == [self.batch_size] else shape)
        }


def loop_step(function: Function, arguments: Sequence[Any], named: Mapping[str, Any]) -> LoopStep:
    """Separate the tensors of a call from everything else.

    Args:
        function: A ``tf.function`` or a Python function.
        arguments: Its positional arguments at a real call.
        named: Its keyword arguments.

    Raises:
        UsageError: An argument has strings.
    """
    python: Value = getattr(function, "python_function", function)
    given = [_opened(value) for value in (*arguments, *named.values())]
    flat = tf.nest.flatten(given)
    places = [place for place, value in enumerate(flat) if _is_tensor(value)]
    names = list(named)

    def step(*tensors: Any) -> Value:
        values = list(flat)
        for place, tensor in zip(places, tensors, strict=True):
            values[place] = tensor
        filled = [_closed(value) for value in tf.nest.pack_sequence_as(given, values)]
        count = len(filled) - len(names)
        return python(*filled[:count], **dict(zip(names, filled[count:], strict=True)))

    specs = tuple(_spec(flat[place]) for place in places)
    leading = [spec.shape[0] for spec in specs if spec.shape.rank]
    return LoopStep(
        function=step,
        tensors=specs,
        batch_size=max(leading, key=leading.count, default=0),
        autograph=bool(getattr(function, "_autograph", True)),
        jit=bool(getattr(function, "_jit_compile", False)),
        name=str(getattr(python, "__name__", "step")),
    )


@dataclass(frozen=True)
class _Batches:
    """Stands for an iterator over a dataset: every ``next`` gives the batch of the trace."""

    batch: Any

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> Value:
        return self.batch

    get_next = __next__


_MARK = "tfdyno: the next batch of an iterator"


def _opened(value: Value) -> Value:
    """Return an iterator as its next batch; anything else as it is."""
    if isinstance(value, tf.data.Iterator | tf.distribute.DistributedIterator):
        value = {_MARK: next(value)}
    return value


def _closed(value: Value) -> Value:
    is_batch = isinstance(value, dict) and list(value) == [_MARK]
    return _Batches(value[_MARK]) if is_batch else value


def _is_tensor(value: Value) -> bool:
    """Return whether it is a tensor, the spec of one, or an array: what differs between calls."""
    if isinstance(value, tf.Variable):
        return False
    return isinstance(value, tf.TensorSpec) or (
        hasattr(value, "dtype") and hasattr(value, "shape") and hasattr(value, "__array__")
    )


def _spec(value: Value) -> tf.TensorSpec:
    if not isinstance(value, tf.TensorSpec):
        tensor = tf.convert_to_tensor(value)
        value = tf.TensorSpec(tensor.shape, tensor.dtype)
    if value.dtype == tf.string:
        raise UsageError(
            "the step takes a tensor of strings",
            why="a GPU has no strings",
            remedy="turn them into numbers in the dataset, before the step",
        )
    return value


def _resized(spec: tf.TensorSpec, own: int, batch_size: int) -> tf.TensorSpec:
    shape = spec.shape.as_list()
    if batch_size and shape and shape[0] == own:
        shape[0] = batch_size
    return tf.TensorSpec(shape, spec.dtype, name=spec.name)


def named_step(workload: Workload) -> LoopStep:
    """Return the function (a ``tf.function`` or not) with a tensor for each of its arguments.

    Raises:
        UsageError: There is no such function, or a spec is not ``dtype[batch,224,224,3]``.
    """
    with user_code(workload.reference):
        function = function_of(workload.reference)
    fixed = {int(number) for text in workload.input_spec for number in re.findall(r"\d+", text)}
    batch = next(size for size in STAND_INS if size not in fixed)
    return loop_step(function, [_zeros(text, batch) for text in workload.input_spec], {})


def _zeros(text: str, batch: int) -> Value:
    """Return a tensor of the shape that a spec describes; ``batch`` stands for the batch size."""
    match = _SPEC.match(text.strip())
    if not match:
        raise UsageError(
            f"--input-spec {text!r} cannot be read",
            remedy="write dtype[dimensions], for example float32[batch,224,224,3]",
        )
    sizes = [part.strip() for part in match[2].split(",") if part.strip()]
    try:
        dtype = tf.as_dtype(match[1])
        shape = [batch if part == "batch" else int(part) for part in sizes]
    except (TypeError, ValueError):
        raise UsageError(
            f"--input-spec {text!r} cannot be read",
            why="it needs a dtype such as float32 and whole sizes, or batch",
            remedy="for example float32[batch,224,224,3]",
        ) from None
    return tf.zeros(shape, dtype)
