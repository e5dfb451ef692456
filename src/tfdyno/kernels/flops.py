"""Work of convolutions and matrix products: FLOPs of the forward geometry and sizes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tfdyno.core.choose.program import Direction

if TYPE_CHECKING:
    from tfdyno.kernels.graph import Graph, Node


ATTENTION = "tfdyno.attention"
"""What the target of a call begins with that stands for fused attention in a traced step."""
BACKWARD, CAUSAL = ".backward", ".causal"
"""What more it says of such a call."""


@dataclass(frozen=True, slots=True)
class LibraryWork:
    """What one library call computes."""

    flops: int
    direction: Direction
    dims: dict[str, tuple[int, ...]]


def convolution_work(graph: Graph, node: Node, *, backward: bool, weights: bool) -> LibraryWork:
    """Count a convolution's FLOPs by its forward geometry, whichever of the three passes it is.

    ``2 * batch * spatial(forward output) * window * channels_in / groups * channels_out``: zeros
    that a dilated input gradient inserts count nothing. ``backward``: it stands in the backward
    pass. ``weights``: its kernel operand comes from weights alone; else, in the backward pass, the
    result is the gradient of a weight.
    """
    if backward and not weights:
        return _weight_gradient(graph, node)
    dilated = max(node.attributes["input_dilation"], default=1) > 1
    strided = max(node.attributes["stride"], default=1) > 1
    reverse = node.attributes["reversed"] or graph.producer(node.operands[1]).op == "reverse"
    if dilated or ((backward or reverse) and not strided):
        return _of_data(graph, node, "input_gradient")
    return _of_data(graph, node, "forward")


def matrix_product_work(graph: Graph, node: Node) -> tuple[int, dict[str, tuple[int, ...]]]:
    """Return FLOPs (two per multiply-add) and ``m n k batch`` of a matrix product."""
    left = graph.values[node.operands[0]].type.shape
    right = graph.values[node.operands[1]].type.shape
    left_batch, right_batch = node.attributes["batch"]
    left_sum, right_sum = node.attributes["contract"]
    batch = prod(left[i] for i in left_batch)
    inner = prod(left[i] for i in left_sum)
    rows = prod(left) // max(1, batch * inner)
    columns = prod(size for i, size in enumerate(right) if i not in (*right_batch, *right_sum))
    flops = 2 * batch * rows * columns * inner
    return flops, {"m": (rows,), "n": (columns,), "k": (inner,), "batch": (batch,)}


def attention_work(graph: Graph, node: Node) -> tuple[int, dict[str, tuple[int, ...]]]:
    """Return FLOPs (two per multiply-add) and sizes of fused attention, forward or backward.

    Queries are (batch, tokens, heads, width), keys the same with heads that several of the queries
    may share. The forward pass multiplies queries by keys and weights by values; the backward pass
    computes the scores again and has four gradients. A causal one meets half of the pairs.
    """
    batch, queries, heads, width = graph.values[node.operands[0]].type.shape
    _, keys, key_heads, _ = graph.values[node.operands[1]].type.shape
    target = node.attributes["target"]
    causal, products = CAUSAL in target, 5 if BACKWARD in target else 2
    pairs = batch * heads * queries * keys // (2 if causal else 1)
    dims: dict[str, tuple[int, ...]] = {
        "batch": (batch,),
        "heads": (heads,),
        "key_heads": (key_heads,),
        "head_dim": (width,),
        "queries": (queries,),
        "keys": (keys,),
        "causal": (int(causal),),
        "products": (products,),
    }
    return 2 * products * pairs * width, dims


def _of_data(graph: Graph, node: Node, direction: Direction) -> LibraryWork:
    """Count the forward pass, or the gradient of its input.

    The data operand of the second is the gradient of the forward output. A transposed convolution
    counts as the second.
    """
    data, kernel, output = _shapes(graph, node)
    stride = node.attributes["stride"]
    if direction == "input_gradient":
        data, output, stride = output, data, node.attributes["input_dilation"]
    dims = {
        "n": (data[0],),
        "cin": (data[1],),
        "cout": (output[1],),
        "groups": (node.attributes["feature_groups"],),
        "window": kernel[2:],
        "stride": stride,
        "input": data[2:],
        "output": output[2:],
    }
    return LibraryWork(2 * data[0] * prod(output[2:]) * prod(kernel), direction, dims)


def _weight_gradient(graph: Graph, node: Node) -> LibraryWork:
    """Forward input and gradient of the forward output; what is summed over is the batch.

    Of a transposed convolution (dilated data operand) the roles are exchanged.
    """
    data, kernel, output = _shapes(graph, node)
    transposed = max(node.attributes["input_dilation"], default=1) > 1
    groups = max(node.attributes["batch_groups"], node.attributes["feature_groups"])
    small, large = (data, kernel) if transposed else (kernel, data)
    inner, outer = (kernel[1], data[0]) if transposed else (data[0], kernel[1])
    stride = node.attributes["input_dilation" if transposed else "kernel_dilation"]
    dims = {
        "n": (data[1],),
        "cin": (inner,),
        "cout": (outer,),
        "groups": (groups,),
        "window": output[2:],
        "stride": stride,
        "input": large[2:],
        "output": small[2:],
    }
    flops = 2 * data[1] * prod(small[2:]) * prod(output)
    return LibraryWork(flops, "weight_gradient", dims)


def _shapes(graph: Graph, node: Node) -> tuple[tuple[int, ...], ...]:
    """Return data (batch, features, spatial), kernel (in, out, spatial), output as data."""
    shapes = [graph.values[value].type.shape for value in (*node.operands[:2], node.results[0])]
    labels = [node.attributes[name] for name in ("input", "kernel", "output")]
    return tuple(
        tuple(shape[i] for i in label) for shape, label in zip(shapes, labels, strict=True)
    )
