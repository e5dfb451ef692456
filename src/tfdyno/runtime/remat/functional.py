"""A functional Keras model as a row of operations, run in stretches that are recomputed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfdyno.runtime.base.keras_internals import all_layers
from tfdyno.runtime.remat.plan import ModelOperation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.base.untyped import Function, Model, Tensor, Value
    from tfdyno.runtime.remat.checkpointed import CheckpointedRegion
    from tfdyno.runtime.remat.gradient import Region
    from tfdyno.runtime.remat.plan import Segment

    Around = Callable[[int, Callable[..., Any]], Callable[..., Any]]

_METHOD = "_run_through_graph"


class Functional:
    """The operations of a functional model in the order in which Keras runs them.

    Attributes:
        model: The model itself; of a Sequential, the functional model that it makes of itself.
        nodes: Calls of operations, without inputs.
    """

    def __init__(self, model: Model) -> None:
        """Take a built model."""
        self.model = model
        levels = sorted(model._nodes_by_depth.items(), reverse=True)
        nodes = [node for _, level in levels for node in level]
        self.nodes = [node for node in nodes if node.operation and not node.is_input]

    @property
    def key(self) -> int:
        """What tells the spans of this model from others'."""
        return id(self.model)

    def steps(
        self,
        kept_bytes: Sequence[int],
        forward_flops: Sequence[float],
        batch_size: int,
        allowed: Callable[[str], bool],
    ) -> list[ModelOperation]:
        """Return the operations for choosing where to cut.

        Args:
            kept_bytes: What each keeps for the backward pass.
            forward_flops: What each computes.
            batch_size: Stands where a shape leaves it open.
            allowed: Tells by name whether an operation may be recomputed.
        """
        return [
            ModelOperation(
                name=node.operation.name,
                reads=tuple(id(x) for x in node.input_tensors),
                makes=tuple((id(x), float_bytes(x, batch_size)) for x in node.outputs),
                kept_bytes=kept,
                forward_flops=cost,
                # Of whole numbers (embeddings) nothing is kept, and gradients would get dense.
                allowed=allowed(node.operation.name)
                and any(float_bytes(x) for x in node.input_tensors),
            )
            for node, kept, cost in zip(self.nodes, kept_bytes, forward_flops, strict=True)
        ]

    @property
    def results(self) -> list[int]:
        """The tensors that the model gives."""
        return [id(x) for x in self.model.outputs]

    def install(self, around: Around) -> None:
        """Run each operation by what ``around(number, operation)`` gives, until ``remove``."""
        self._run([(n, n + 1, None) for n in range(len(self.nodes))], around)

    def recompute(
        self, segments: Sequence[Segment], regions: Sequence[Region | CheckpointedRegion]
    ) -> None:
        """Run segments as regions that are computed again in the backward pass."""
        rows: list[tuple[int, int, Region | CheckpointedRegion | None]] = []
        done = 0
        for segment, region in zip(segments, regions, strict=True):
            rows += [(n, n + 1, None) for n in range(done, segment.first)]
            rows.append((segment.first, segment.last, region))
            done = segment.last
        rows += [(n, n + 1, None) for n in range(done, len(self.nodes))]
        self._run(rows, lambda _number, operation: operation)

    def remove(self) -> None:
        """Let Keras run the model by itself again."""
        self.model.__dict__.pop(_METHOD, None)

    def layers(self, first: int, last: int) -> list[Any]:
        """Return the layers among some operations, each once."""
        operations = {id(n.operation): n.operation for n in self.nodes[first:last]}
        return [each for each in operations.values() if isinstance(each, keras.Layer)]

    def _run(
        self,
        rows: Sequence[tuple[int, int, Region | CheckpointedRegion | None]],
        around: Around,
    ) -> None:
        """Replace Keras' run through the graph, for this model alone."""
        original = getattr(type(self.model), _METHOD)
        last_use = {id(x): n for n, node in enumerate(self.nodes) for x in node.input_tensors}
        last_use |= dict.fromkeys(self.results, len(self.nodes))
        plans = [(first, last, region, *self._edges(first, last, last_use))
                 for first, last, region in rows]  # fmt: skip

        def run(
            inputs: Tensor,
            operation_fn: Callable[[Any], Any] = lambda operation: operation,
            call_fn: Function = None,
        ) -> Value:
            flat = keras.tree.flatten(inputs)
            if call_fn is not None or any(isinstance(x, keras.KerasTensor) for x in flat):
                return original(self.model, inputs, operation_fn, call_fn)
            values = dict(zip((id(x) for x in self.model.inputs), flat, strict=False))

            def stretch(first: int, last: int, given: dict[int, Any], wanted: list[int]) -> Value:
                inside = dict(given)
                for number in range(first, last):
                    node = self.nodes[number]
                    if any(id(x) not in inside for x in node.input_tensors):
                        continue  # as in Keras: an input that was not given
                    args, options = node.arguments.fill_in(inside)
                    outputs = around(number, operation_fn(node.operation))(*args, **options)
                    inside.update(_named(node.outputs, keras.tree.flatten(outputs)))
                return {key: inside[key] for key in wanted if key in inside}

            for first, last, region, reads, makes in plans:
                given = {key: values[key] for key in reads if key in values}
                if region is None:
                    values.update(stretch(first, last, given, makes))
                else:
                    found = region.run(_ordered(stretch, first, last, makes), given)
                    values.update(found)
            results = [values[key] for key in self.results]
            return keras.tree.pack_sequence_as(self.model._outputs_struct, results)

        self.model.__dict__[_METHOD] = run

    def _edges(
        self, first: int, last: int, last_use: dict[int, int]
    ) -> tuple[list[int], list[int]]:
        """Return tensors that a stretch reads from before it, and those that are read after it."""
        inside = self.nodes[first:last]
        made = dict.fromkeys(id(x) for node in inside for x in node.outputs)
        reads = dict.fromkeys(id(x) for node in inside for x in node.input_tensors)
        later = [key for key in made if last_use.get(key, -1) >= last]
        return [key for key in reads if key not in made], later


def _ordered(stretch: Callable[..., Any], first: int, last: int, makes: list[int]) -> Value:
    """Return a stretch as a function of what it reads."""
    return lambda given: stretch(first, last, given, makes)


def _named(tensors: Sequence[Any], values: Sequence[Any]) -> dict[int, Any]:
    return {id(x): value for x, value in zip(tensors, values, strict=False)}


def functionals(model: Model) -> list[Functional]:
    """Return every functional model in a model, itself first."""
    found: dict[int, Any] = {}
    for layer in all_layers(model):
        inner = getattr(layer, "_functional", None) or layer
        if hasattr(inner, "_nodes_by_depth") and hasattr(inner, "outputs"):
            found.setdefault(id(inner), inner)
    return [Functional(inner) for inner in found.values()]


def float_bytes(tensor: Tensor, batch_size: int = 1) -> int:
    """Return size of a tensor that carries a gradient, 0 of any other.

    Args:
        tensor: Anything with a shape and a dtype.
        batch_size: Stands for an unknown first dimension; other unknown ones count one.
    """
    kind = tf.as_dtype(tensor.dtype)
    dims = tuple(tensor.shape)
    known = [dim or (1 if n else batch_size) for n, dim in enumerate(dims)]
    return math.prod(known) * kind.size if kind.is_floating else 0
