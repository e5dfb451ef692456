"""How much a train step computes, for the share of the cards' peak that a training reaches."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import TfdynoError
from tfdyno.runtime.base.keras_internals import inner_layers
from tfdyno.runtime.base.replicas import replicas
from tfdyno.runtime.base.tensorflow_internals import operation_flops
from tfdyno.runtime.workload.dataspec import DEFAULT_BATCH, of_fit
from tfdyno.runtime.workload.rebatch import is_arrays

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.base.untyped import Model, Operation
    from tfdyno.core.recipe.recipe import Recipe

PASSES = 3
"""A backward pass computes two products for each of the forward pass."""
PRODUCTS = frozenset(
    "MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 Conv2D Conv3D DepthwiseConv2dNative".split()
)
LOOPS = frozenset({"While", "StatelessWhile", "CudnnRNNV3", "CudnnRNN"})
"""What they compute stands in no graph, or runs who knows how often."""


def flops_and_peak(
    model: Model,
    arguments: Mapping[str, Any],
    peaks: Mapping[str, Sequence[float]],
    recipe: Recipe,
) -> tuple[float, float]:
    """Return a step's FLOPs over all replicas, and the cards' peak in FLOP/s; zeros: not known.

    Convolutions and matrix products count with two for a multiply-add, three times for the forward
    and the backward pass. What is computed again to save memory is not counted.

    Args:
        model: That is to be trained.
        arguments: Of its ``fit``.
        peaks: Of each card by the dtype that layers compute in.
        recipe: Its strategy takes so many of the cards; without one, that of the model does.
    """
    cards = peaks.get(_compute_dtype(model), ())
    count = recipe.replica_count(len(cards)) if recipe.strategy else replicas(model)
    peak = sum(cards[:count])
    if not peak:
        return 0.0, 0.0
    return PASSES * forward_flops(model) * _batch_size(arguments), peak


def forward_flops(model: Model) -> float:
    """Return FLOPs of the products in a forward pass of one sample; 0.0 where that is not known."""
    import tensorflow as tf

    inputs = getattr(model, "inputs", None) or ()
    shapes = [tuple(one.shape[1:]) for one in inputs]
    if not inputs or any(None in shape for shape in shapes):
        return 0.0
    specs = [tf.TensorSpec((1, *s), i.dtype) for s, i in zip(shapes, inputs, strict=True)]
    given = getattr(model, "_inputs_struct", None)  # of a functional model
    structure = specs[0] if given is None else tf.nest.pack_sequence_as(given, specs)
    with contextlib.suppress(Exception):  # a number for the eye is no reason to fail
        traced = tf.function(lambda x: model(x, training=False), autograph=False)
        graph = traced.get_concrete_function(structure).graph
        nodes = list(graph.as_graph_def().node)
        if any(node.op in LOOPS for node in nodes):
            return 0.0
        counts = [operation_flops(graph, node) for node in nodes if node.op in PRODUCTS]
        sums = [_einsum_flops(one) for one in graph.get_operations() if one.type == "Einsum"]
        return float(sum(count for count in (*counts, *sums) if count))
    return 0.0


def _einsum_flops(operation: Operation) -> int:
    """Return two for each combination of all indices, where the shapes are known."""
    terms = operation.get_attr("equation").decode().partition("->")[0].split(",")
    sizes = {
        label: size
        for term, tensor in zip(terms, operation.inputs, strict=True)
        for label, size in zip(term, tensor.shape, strict=False)
    }
    return 2 * math.prod(sizes.values())


def _compute_dtype(model: Model) -> str:
    """Return the compute dtype of the layer with the most weights."""
    layers = [layer for layer in inner_layers(model) if layer.weights]
    if not layers:
        return ""
    largest = max(layers, key=lambda layer: 0 if layer._layers else layer.count_params())
    return str(largest.compute_dtype)


def _batch_size(arguments: Mapping[str, Any]) -> int:
    """Return the batch size over all replicas; 0 for what can only be read once."""
    x = arguments.get("x")
    if not (is_arrays(x) or hasattr(x, "element_spec")):
        return 0
    with contextlib.suppress(TfdynoError):
        return of_fit(dict(arguments)).batch_size or (DEFAULT_BATCH if is_arrays(x) else 0)
    return 0
