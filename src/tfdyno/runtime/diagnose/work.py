"""What a step has to compute, and what the cards could: facts that decide what a lever gains."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.runtime.base.keras_internals import inner_layers
from tfdyno.runtime.base.tensorflow_internals import memory_limits_bytes, operation_flops
from tfdyno.runtime.diagnose.host import memory_used_bytes
from tfdyno.runtime.diagnose.model import step_graphs
from tfdyno.runtime.recipe.flops import LOOPS, PASSES, PRODUCTS, forward_flops

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.base.untyped import Function, Graph, Layer, Model

BYTES_PER_S = "bytes_per_s"
"""Key of the cards' memory rate, beside the dtypes that their peaks are of."""
_PRODUCTS = PRODUCTS | {"Conv2DBackpropInput", "Conv2DBackpropFilter"}
_UNKNOWN = frozenset({
    "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropInput",
    "DepthwiseConv2dNativeBackpropFilter", "Einsum", "XlaLaunch", "SparseMatMul",
})  # fmt: skip
"""Products that TensorFlow has no count for: with one of them the sum would be too small."""
_WIDTH = 8
"""Tensor cores multiply 16-bit numbers in eights: NVIDIA, Matrix Multiplication Background User's
Guide, section 3: dimensions that are multiples of 16 bytes."""
_LEAST_WORK_RATIO = 0.1
_MOST_LAYERS = 5


def work_of(
    model: Model,
    function: Function,
    batch_size: int,
    precision: str,
    cards: Mapping[str, Sequence[float]],
    replica_count: int = 1,
) -> dict[str, Any]:
    """Return fields of ``StepFacts``: ``step_flops``, ``unaligned``, and what is known of cards.

    Args:
        model: A Keras model; None for a loop without one.
        function: The step of a loop, a ``tf.function``.
        batch_size: Over all replicas; 0: not known.
        precision: As ``facts_of`` tells it.
        cards: FLOP/s of each card by dtype, and its bytes per second.
        replica_count: So many of them work on a step.
    """
    found: dict[str, Any] = {"unaligned": unaligned(model), "compute_capability": capability()}
    if model is not None:
        found["step_flops"] = PASSES * forward_flops(model) * batch_size
    elif function is not None:
        found["step_flops"] = graph_flops(function)
    dtype = precision.removeprefix("mixed_")
    for field, name in (("peak_flops_per_s", dtype), ("peak_bytes_per_s", BYTES_PER_S)):
        found[field] = float(sum(cards.get(name, ())[: max(1, replica_count)]))
    return found


def graph_flops(function: Function) -> float:
    """Sum the products' FLOPs in a traced step, backward too; 0.0 where not all are known.

    Two for a multiply-add. A step that was traced for several shapes has no single number.
    """
    if len(getattr(function, "_list_all_concrete_functions", list)()) != 1:
        return 0.0
    operations = [one for graph in step_graphs(None, function) for one in _needed(graph)]
    kinds = {one.type for one in operations}
    if not operations or kinds & (LOOPS | _UNKNOWN):
        return 0.0
    total = 0.0
    for one in operations:
        if one.type not in _PRODUCTS:
            continue
        count = None
        with contextlib.suppress(Exception):  # a shape that is not known raises in many ways
            count = operation_flops(one.graph, one.node_def)
        if not count:
            return 0.0
        total += count
    return total


def _needed(graph: Graph) -> list[Any]:
    """Return operations that run: gradients that nobody asked for are left out."""
    waiting = [one.op for one in graph.outputs] + list(graph.control_outputs)
    found: dict[str, Any] = {}
    while waiting:
        one = waiting.pop()
        if one.name not in found:
            found[one.name] = one
            waiting += [*(each.op for each in one.inputs), *one.control_inputs]
    return list(found.values())


def unaligned(model: Model) -> tuple[str, ...]:
    """Return layers with a tenth of the products or more whose width is no multiple of 8.

    A head of ten classes is no matter: it has next to no work.
    """
    rows = [row for row in map(_work, inner_layers(model)) if row]
    whole = math.fsum(work for _, work, _ in rows)
    odd = [(work, words) for words, work, width in rows
           if width % _WIDTH and work >= _LEAST_WORK_RATIO * whole]  # fmt: skip
    return tuple(words for _, words in sorted(odd, reverse=True)[:_MOST_LAYERS])


def capability() -> str:
    """Return the compute capability of the first card, ``8.0``; empty without one."""
    with contextlib.suppress(ValueError, RuntimeError, IndexError):
        first = tf.config.list_physical_devices("GPU")[0]
        found = tf.config.experimental.get_device_details(first).get("compute_capability")
        return ".".join(map(str, found)) if found else ""
    return ""


def memory() -> tuple[int, int]:
    """Return bytes in use at most, and that may be: of the first card, else of this machine now.

    Of the machine, or of the container where that has less left: what others hold counts too.
    """
    with contextlib.suppress(ValueError, RuntimeError, KeyError):
        limit_bytes = memory_limits_bytes()["GPU:0"]
        return int(tf.config.experimental.get_memory_info("GPU:0")["peak"]), limit_bytes
    return machine_memory()


def machine_memory() -> tuple[int, int]:
    """Return the same of this machine, whatever computes."""
    return memory_used_bytes(Path("/"))


def _work(layer: Layer) -> tuple[str, float, int] | None:
    """Write ``dense_1: 1001 units`` with products per sample and width; None: it has none."""
    kind = type(layer).__name__
    noun = "units" if kind == "Dense" else "filters" if kind.startswith("Conv") else ""
    try:
        kernel = tuple(int(size) for size in layer.kernel.shape)
        places = [int(size or 1) for size in layer.output.shape[1:]]
    except (AttributeError, TypeError, ValueError):
        return None
    if not noun or "Transpose" in kind:
        return None
    width = kernel[-1]
    positions = max(1.0, math.prod(places) / max(1, width))
    return f"{layer.name}: {width:,} {noun}", math.prod(kernel) * positions, width
