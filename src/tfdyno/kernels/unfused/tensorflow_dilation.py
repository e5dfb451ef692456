"""Dilated convolutions as TensorFlow runs them in graph mode: by rearranging the image.

``tf.nn.convolution`` moves each phase of the dilation into the batch (SpaceToBatchND), runs a plain
convolution and moves the result back. The rearranged image is padded for it, and is what the
gradient of the filter reads: it is kept beside the image itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.kernels.graph import TensorType
from tfdyno.kernels.unfused.tensorflow_ops import buffer_of, without_phase

if TYPE_CHECKING:
    from tfdyno.kernels.graph import Graph, Node
    from tfdyno.kernels.unfused.tensorflow_ops import Operation, Operations


def rearrange_dilated(operations: Operations) -> None:
    """Put the rearranging kernels around dilated convolutions and their gradients."""
    graph = operations.graph
    images: dict[str, tuple[int, int]] = {}  # by layer: the image, and the same rearranged
    items: list[Operation] = []
    for each in operations.items:
        node = graph.nodes[each.node]
        place = without_phase(node.location)
        if each.kind != "convolution":
            items.append(each)
        elif operations.backward[each.node]:
            items += _backward(operations, each, images.get(place))
        elif max(node.attributes["kernel_dilation"]) > 1:
            image = buffer_of(graph, node.operands[0])[0]
            images[place] = image, operations.new(_rearranged(graph, node, "input"))
            items += _forward(operations, each, *images[place])
        else:
            items.append(each)
    operations.items = items


def _backward(
    operations: Operations, each: Operation, images: tuple[int, int] | None
) -> list[Operation]:
    """The gradient of the filter reads the rearranged image; the image's own is moved back."""
    if images is None:
        return [each]
    image, rearranged = images
    if image in each.reads:
        return [replace(each, reads=[rearranged if b == image else b for b in each.reads])]
    made = operations.new(operations.type_of(rearranged))
    return [
        replace(each, writes=[made]),
        replace(each, kind="batch_to_space", reads=[made], over=[], after=set()),
    ]


def _forward(
    operations: Operations, each: Operation, image: int, rearranged: int
) -> list[Operation]:
    graph = operations.graph
    made = operations.new(_rearranged(graph, graph.nodes[each.node], "output"))
    reads = [rearranged if buffer == image else buffer for buffer in each.reads]
    return [
        replace(each, kind="space_to_batch", reads=[image], writes=[rearranged], over=[]),
        replace(each, reads=reads, writes=[made]),
        replace(each, kind="batch_to_space", reads=[made], over=[]),
    ]


def _rearranged(graph: Graph, node: Node, side: str) -> TensorType:
    """Return the input or the output of a dilated convolution, its phases moved into the batch."""
    attributes = node.attributes
    kernel = graph.values[node.operands[1]].type.shape
    value = node.operands[0] if side == "input" else node.results[0]
    kind, result = graph.values[value].type, graph.values[node.results[0]].type
    batch, channels = (kind.shape[axis] for axis in attributes[side][:2])
    spatial, phases = [], 1
    for axis, window_axis, dilation in zip(
        attributes["output"][2:],
        attributes["kernel"][2:],
        attributes["kernel_dilation"],
        strict=True,
    ):
        padded = result.shape[axis] + dilation * (kernel[window_axis] - 1)  # strides are 1
        length = -(-padded // dilation)
        spatial.append(length if side == "input" else length - kernel[window_axis] + 1)
        phases *= dilation
    shape = (batch * phases, *spatial, channels)
    return TensorType(shape, kind.dtype, kind.element_bits)
