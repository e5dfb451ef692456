"""Which Keras layer a tensor or an operation of a converted graph comes from, by its path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from tfdyno.core.deploy.litert_graph import LitertGraph, LitertSubgraph

_COUNTED = re.compile(r"_\d+$")
_FLOAT_DTYPES = frozenset({"float32", "float16", "float64", "bfloat16"})
_BORDERS = frozenset({"QUANTIZE", "DEQUANTIZE"})


def layer_of(path: str, layers: Collection[str], model: str = "") -> str:
    """Return the innermost layer that a path names: ``cnn_1/first_1/Relu`` is of ``first``.

    TensorFlow numbers each part of a path that was there before; a number that the model's own
    part has is taken off every part first, so that ``dense_1`` stays what it is where it can.

    Args:
        path: Of a tensor; several joined by semicolons where operations were fused: the first.
        layers: Names of the model's layers; empty: none is known, and all parts between the
            model's and the operation's stand for the layer.
        model: Name of the model, whose own number is none of TensorFlow's; empty: not known.
    """
    parts = [part for part in path.partition(";")[0].split("/") if part]
    if not layers:
        return "/".join(_COUNTED.sub("", part) for part in parts[1:-1])
    numbered = _COUNTED.search(parts[0].removeprefix(model)) if parts else None
    counted = numbered.group() if numbered else ""
    found = ""
    for part in parts:
        plain = part.removesuffix(counted) if counted else part
        found = next(
            (name for name in (plain, part, _COUNTED.sub("", part)) if name in layers), found
        )
    return found


def float_operators(graph: LitertGraph, layers: Collection[str] = ()) -> list[str]:
    """List operators that compute in floats, as ``OPERATION of layer``, each once in their order.

    What only turns floats into integers or back at the borders of the graph is none of them.
    """
    found: dict[str, None] = {}
    for subgraph in graph.subgraphs:
        for place, operator in enumerate(subgraph.operators):
            if operator.kind in _BORDERS or not _computes_floats(subgraph, place):
                continue
            layer = operator_layer(subgraph, place, layers)
            found[f"{operator.kind} of {layer}" if layer else operator.kind] = None
    return list(found)


def _computes_floats(subgraph: LitertSubgraph, place: int) -> bool:
    operator = subgraph.operators[place]
    touched = [*operator.inputs, *operator.outputs]
    return any(
        subgraph.tensors[i].dtype in _FLOAT_DTYPES and not subgraph.tensors[i].constant
        for i in touched
        if i >= 0
    )


def operator_layer(subgraph: LitertSubgraph, place: int, layers: Collection[str] = ()) -> str:
    """Return an operator's layer: by what it makes, else by its weights, else by its input."""
    operator = subgraph.operators[place]
    weights = [i for i in operator.inputs if i >= 0 and subgraph.tensors[i].constant]
    taken = [i for i in operator.inputs if i >= 0 and not subgraph.tensors[i].constant]
    for i in (*operator.outputs, *weights, *taken):
        name = layer_of(subgraph.tensors[i].name, layers)
        if name:
            return name
    return ""
