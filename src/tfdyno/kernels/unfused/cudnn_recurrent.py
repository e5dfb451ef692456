"""Recurrent layers as cuDNN computes them, in place of the loop that a traced step has.

cuDNN multiplies the inputs of all time steps by their weights at once; what depends on the state
before runs time step by time step: a product and the arithmetic of the gates, one after the other.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import Kernel
from tfdyno.kernels.layers import layer_of, phase_of

if TYPE_CHECKING:
    from tfdyno.core.choose.program import Phase
    from tfdyno.kernels.graph import Graph, Node
    from tfdyno.kernels.records import Sizes

LAUNCHES = {"forward": 2, "backward": 4}
"""Kernels for each time step: a product and the gates; backward one more of each."""
PACKING = 20
"""Small kernels in which Keras arranges a layer's weights as cuDNN wants them, in each pass
(``_standardize_cudnn_weights`` of ``keras/src/backend/tensorflow/rnn.py``, Keras 3.15)."""
MATRIX = 2
_NUMBER = re.compile(r"_\d+$")
KEPT = frozenset({"convert"})
"""Operations of such a layer that stay: its weights are cast."""
Numbered = tuple[int, Kernel]
Dims = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Loop:
    """What a loop over the sequence computes."""

    steps: int
    batch: int
    inputs: int
    hidden: int
    gates: int
    dtype: str
    layer: str
    node: int


def recurrent_kernels(
    graph: Graph, sizes: Sizes, layers: frozenset[str], mode: str
) -> tuple[list[Numbered], set[int]]:
    """Return kernels, each with the node where it stands, and the nodes that they replace."""
    if not layers:
        return [], set()
    inside: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for index, node in enumerate(graph.nodes):
        layer = layer_of(node.location)
        if any(_is_one(part, layers) for part in layer.split("/")):
            inside[_named(layer, layers), _is_backward(node.location, mode)].append(index)
    made: list[Numbered] = []
    replaced: set[int] = set()
    for (layer, backward), nodes in inside.items():
        loop = _loop(graph, layer, inside.get((layer, False), []))
        if loop is None:
            continue
        replaced.update(i for i in nodes if not _stays(graph.nodes[i]))
        place = next(i for i in nodes if graph.nodes[i].repeats > 1 or i == nodes[-1])
        kernels = _backward(loop, sizes) if backward else _forward(loop, sizes)
        made += [(place, kernel) for kernel in kernels]
    return made, replaced


def _is_one(part: str, layers: frozenset[str]) -> bool:
    """Return whether a scope is a layer's; TensorFlow numbers the scopes of a second trace."""
    return part in layers or _NUMBER.sub("", part) in layers


def _named(layer: str, layers: frozenset[str]) -> str:
    """Return the path of a layer up to the name that is looked for.

    TensorFlow's gradient of a loop has the whole path of the loop again behind its own.
    """
    parts = layer.split("/")
    last = max(i for i, part in enumerate(parts) if _is_one(part, layers))
    first = max(i for i, part in enumerate(parts[: last + 1]) if part == parts[0])
    return "/".join(parts[first : last + 1])


def _stays(node: Node) -> bool:
    return node.op in KEPT and node.repeats == 1


def _is_backward(location: str, mode: str) -> bool:
    return mode == "train" and phase_of(location) == "backward"


def _loop(graph: Graph, layer: str, nodes: list[int]) -> _Loop | None:
    """Return sizes of the forward pass: from its two products, by the state and by the inputs.

    That by the inputs may stand in the loop, or in front of it for all time steps at once.
    """
    shapes = [
        (graph.values[graph.nodes[i].operands[1]].type.shape, i)
        for i in nodes
        if graph.nodes[i].op == "dot_general"
    ]
    weights = [(shape, i) for shape, i in shapes if len(shape) == MATRIX]
    state = [
        (shape, i)
        for shape, i in weights
        if graph.nodes[i].repeats > 1 and shape[1] in (3 * shape[0], 4 * shape[0])
    ]
    if not state:
        return None
    (hidden, wide), index = state[-1]
    inputs = next((shape[0] for shape, i in weights if i != index), hidden)
    node = graph.nodes[index]
    held = graph.values[node.operands[0]].type
    return _Loop(
        steps=node.repeats,
        batch=prod(held.shape[:-1]),
        inputs=inputs,
        hidden=hidden,
        gates=wide // hidden,
        dtype=held.dtype,
        layer=layer,
        node=index,
    )


def _forward(loop: _Loop, sizes: Sizes) -> list[Kernel]:
    return [
        _packing(loop, "forward"),
        _product(loop, sizes, "forward"),
        _steps(loop, sizes, "forward"),
    ]


def _backward(loop: _Loop, sizes: Sizes) -> list[Kernel]:
    wide = loop.gates * loop.hidden
    return [
        _steps(loop, sizes, "backward"),
        _product(loop, sizes, "backward"),
        *(_weights(loop, sizes, rows, wide) for rows in (loop.inputs, loop.hidden)),
        _packing(loop, "backward"),
    ]


def _width(loop: _Loop) -> int:
    return {"f64": 8, "f32": 4}.get(loop.dtype, 2)


def _product(loop: _Loop, sizes: Sizes, phase: Phase) -> Kernel:
    """Return all time steps by the weights of the inputs."""
    wide, many, width = loop.gates * loop.hidden, loop.steps * loop.batch, _width(loop)
    n, inner = (wide, loop.inputs) if phase == "forward" else (loop.inputs, wide)
    dims: Dims = {"m": (many,), "n": (n,), "k": (inner,), "batch": (1,)}
    return Kernel(
        kind="gemm",
        dtype=loop.dtype,
        flops=sizes.scaled(2 * many * n * inner, loop.batch),
        read_bytes=_per_sample(sizes, loop, loop.steps * inner * width) + _fixed(n * inner * width),
        write_bytes=_per_sample(sizes, loop, loop.steps * n * width),
        direction="forward" if phase == "forward" else "input_gradient",
        phase=phase,
        layer=loop.layer,
        name="cudnn_input_product",
        dims=dims,
        dims_scaled=("m",) if sizes.grows(loop.batch) else (),
    )


def _weights(loop: _Loop, sizes: Sizes, rows: int, wide: int) -> Kernel:
    """Return the gradient of weights, summed over all time steps at once."""
    many, width = loop.steps * loop.batch, _width(loop)
    return Kernel(
        kind="gemm",
        dtype=loop.dtype,
        flops=sizes.scaled(2 * rows * wide * many, loop.batch),
        read_bytes=_per_sample(sizes, loop, loop.steps * (rows + wide) * width),
        write_bytes=_fixed(rows * wide * width),
        direction="weight_gradient",
        phase="backward",
        layer=loop.layer,
        name="cudnn_weight_gradient",
        dims={"m": (rows,), "n": (wide,), "k": (many,), "batch": (1,)},
        dims_scaled=("k",) if sizes.grows(loop.batch) else (),
    )


def _steps(loop: _Loop, sizes: Sizes, phase: Phase) -> Kernel:
    """Return what waits for the time step before: weights are read from the cache each time."""
    wide, width = loop.gates * loop.hidden, _width(loop)
    count = loop.steps * LAUNCHES[phase]
    moved = loop.steps * (wide + 2 * loop.hidden) * width
    dims: Dims = {
        "steps": (loop.steps,),
        "n": (loop.batch,),
        "hidden": (loop.hidden,),
        "gates": (loop.gates,),
    }
    return Kernel(
        kind="recurrent",
        dtype=loop.dtype,
        flops=sizes.scaled(2 * loop.steps * loop.batch * loop.hidden * wide, loop.batch),
        read_bytes=_per_sample(sizes, loop, moved) + _fixed(loop.hidden * wide * width),
        write_bytes=_per_sample(sizes, loop, moved),
        direction="forward" if phase == "forward" else "input_gradient",
        phase=phase,
        layer=loop.layer,
        name="cudnn_steps",
        dims=dims,
        dims_scaled=("n",) if sizes.grows(loop.batch) else (),
        repeats=loop.steps,
        count=count,
    )


def _packing(loop: _Loop, phase: Phase) -> Kernel:
    wide = loop.gates * loop.hidden
    moved = _fixed((loop.inputs + loop.hidden) * wide * _width(loop)).times(2)
    return Kernel(
        kind="copy",
        dtype=loop.dtype,
        read_bytes=moved,
        write_bytes=moved,
        phase=phase,
        layer=loop.layer,
        name="cudnn_weights",
        count=PACKING,
    )


def _per_sample(sizes: Sizes, loop: _Loop, amount: float) -> Scaled:
    return sizes.scaled(amount * loop.batch, loop.batch)


def _fixed(amount: float) -> Scaled:
    return Scaled(fixed=float(amount))
