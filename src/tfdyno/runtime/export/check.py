"""What in a model a format cannot take, found before anything is converted: facts for the rules."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.process.failure import first_line
from tfdyno.runtime.base.keras_internals import mend_tf2onnx
from tfdyno.runtime.export.source import Source, compute_dtypes

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Operation, Value

_NUMBER = re.compile(r"_\d+$")
Names = Mapping[str, Mapping[str, list[str]]]
"""By format, then by kind (``layer``, ``operation``, ``dtype``): what the tables refuse."""
Fact = dict[str, str]
AS_ONNX = {"tensorrt": "onnx"}
"""Formats that are made from another one."""


def check(source: Source, formats: Iterable[str], refused: Names) -> list[Fact]:
    """Every obstacle once: ``format``, ``kind``, ``name`` and ``layer``.

    Args:
        source: The model.
        formats: That are wanted.
        refused: Names by format and kind, as the tables of the rules have them.

    Raises:
        UsageError: A format needs a Keras model, or nothing around it.
    """
    found: list[Fact] = []
    for one in formats:
        _check_kind(source, one)
        for base in filter(None, (AS_ONNX.get(one), one)):
            rules = refused.get(base, {})
            hits = [*_layers(source, rules), *_types(source, base, rules)]
            if base == "onnx":
                hits += _onnx_operations(source)
            elif rules.get("operation"):
                hits += _graph_operations(source, rules["operation"])
            found += [{"format": one, **hit} for hit in hits]
        if one.startswith("litert"):
            found += _litert(source, one)
    return list({tuple(sorted(one.items())): one for one in found}.values())


def layer_of(operation: str, layers: Iterable[str]) -> str:
    """The layer that an operation belongs to, by the innermost part of its name that is one."""
    known = set(layers)
    for part in reversed(operation.split("/")[:-1]):
        for name in (part, _NUMBER.sub("", part)):
            if name in known:
                return name
    return ""


def _check_kind(source: Source, kind: str) -> None:
    if source.model is None and kind not in ("savedmodel", "onnx", "tensorrt"):
        raise UsageError(f"a SavedModel cannot be exported to {kind}",
                         why="it holds a graph, not the layers",
                         remedy="name the Keras model that it was made from")  # fmt: skip
    if not source.bare and kind not in ("savedmodel", "onnx", "tensorrt"):
        raise UsageError(f"{kind} holds the model alone",
                         why="--preprocess and --postprocess become part of a graph",
                         remedy="export to savedmodel or onnx")  # fmt: skip


def _names(source: Source) -> list[str]:
    if source.model is None:
        return []
    return [layer.name for layer in source.model._flatten_layers(include_self=False)]


def _layers(source: Source, rules: Mapping[str, list[str]]) -> list[Fact]:
    if source.model is None:
        return []
    refused = set(rules.get("layer", ()))
    return [
        {"kind": "layer", "name": type(layer).__name__, "layer": layer.name}
        for layer in source.model._flatten_layers(include_self=False)
        if type(layer).__name__ in refused
    ]


def _types(source: Source, base: str, rules: Mapping[str, list[str]]) -> list[Fact]:
    """Types of inputs and outputs, and for ONNX those that layers compute in."""
    seen = {spec.dtype.name: "" for spec in (*source.specs, *source.outputs.values())}
    if source.model is not None and base == "onnx":
        computing = set(compute_dtypes(source.model))
        for layer in source.model._flatten_layers(include_self=False):
            dtype = str(layer.compute_dtype)
            if dtype in computing and not seen.get(dtype):
                seen[dtype] = layer.name
    refused = set(rules.get("dtype", ()))
    return [{"kind": "dtype", "name": n, "layer": at} for n, at in seen.items() if n in refused]


def _onnx_operations(source: Source) -> list[Fact]:
    """Operations of the graph that tf2onnx has no handler for, after its own clean-up of it."""
    convert = tf2onnx_module()
    handlers = convert.handler.tf_op.create_mapping(convert.constants.PREFERRED_OPSET, [])
    nodes = [node for node in _frozen(source) if not node.op.startswith("_")]
    refused = [n for n in nodes if n.op not in handlers or n.op.startswith("LookupTable")]
    layers = _names(source)
    return [
        {"kind": "operation", "name": node.op, "layer": layer_of(node.name, layers)}
        for node in refused
    ]


def _frozen(source: Source) -> list[Any]:
    """The nodes that tf2onnx would convert, those in bodies of loops included."""
    concrete = source.function().get_concrete_function()
    names = [tensor.name for tensor in concrete.inputs if tensor.dtype.name != "resource"]
    outputs = [tensor.name for tensor in concrete.outputs]
    try:
        graph = tf2onnx_module().tf_loader.from_function(concrete, names, outputs)
    except Exception as error:
        why = first_line(error)
        raise UsageError(f"{source.title} cannot be frozen for ONNX", why=why) from None
    called = {name for node in graph.node for name in _functions(node)}
    bodies = {function.signature.name: function for function in graph.library.function}
    seen, open_names, nodes = set[str](), set(called), list(graph.node)
    while open_names:
        name = open_names.pop()
        if name in seen or name not in bodies:
            continue
        seen.add(name)
        nodes += bodies[name].node_def
        open_names |= {n for node in bodies[name].node_def for n in _functions(node)}
    return nodes


def _functions(node: Operation) -> list[str]:
    return [value.func.name for value in node.attr.values() if value.HasField("func")]


def _graph_operations(source: Source, patterns: list[str]) -> list[Fact]:
    """Operations of the traced graph whose name is refused."""
    graph = source.function().get_concrete_function().graph.as_graph_def()
    nodes = [*graph.node, *(n for function in graph.library.function for n in function.node_def)]
    layers = _names(source)
    return [
        {"kind": "operation", "name": node.op, "layer": layer_of(node.name, layers)}
        for node in nodes
        if any(fnmatch.fnmatchcase(node.op, one) for one in patterns)
    ]


def _litert(source: Source, kind: str) -> list[Fact]:
    from tfdyno.runtime.litert import convert as export_litert

    return [{"format": kind, **_texts(one)} for one in export_litert.check(source.model)]


def _texts(one: Mapping[str, Any]) -> Fact:
    return {key: str(value) for key, value in one.items()}


def tf2onnx_module() -> Value:
    """The converter, made to work with numpy 2 as Keras does; raises ``UsageError`` without it."""
    try:
        import onnx  # noqa: F401
        import tf2onnx
        import tf2onnx.convert
    except ImportError as error:
        remedy = "pip install 'tfdyno[export]', or name an interpreter that has it with --python"
        raise UsageError("ONNX needs tf2onnx", why=first_line(error), remedy=remedy) from None
    mend_tf2onnx()
    return tf2onnx
