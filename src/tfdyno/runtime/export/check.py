"""What in a model a format cannot take, found before anything is converted: facts for the rules."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.export import ObstacleFact
from tfdyno.process.failure import first_line
from tfdyno.runtime.base.keras_internals import inner_layers, mend_tf2onnx
from tfdyno.runtime.export import huggingface
from tfdyno.runtime.export.source import Source, compute_dtypes
from tfdyno.runtime.litert.names import layer_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tfdyno.core.base.untyped import Operation, Value
    from tfdyno.core.deploy.export import Format, RefusedNames


def check(
    source: Source, formats: Iterable[Format], refused: RefusedNames
) -> tuple[ObstacleFact, ...]:
    """Return every obstacle once.

    Args:
        source: The model.
        formats: That are wanted.
        refused: Names by format and kind, as the tables of the rules have them.

    Raises:
        UsageError: A format needs a Keras model, or nothing around it.
    """
    found: list[ObstacleFact] = []
    for one in formats:
        _check_kind(source, one)
        if one == "huggingface":
            huggingface.check(source)
        bases: tuple[Format, ...] = ("onnx", one) if one == "tensorrt" else (one,)
        for base in bases:  # TensorRT's engine is built from ONNX
            rules = refused.get(base, {})
            found += [*_layers(source, one, rules), *_types(source, one, base, rules)]
            if base == "onnx":
                found += _operations(source, one, _onnx_operations(source))
            elif rules.get("operation"):
                found += _operations(source, one, _graph_operations(source, rules["operation"]))
        if one.startswith("litert"):
            found += _litert(source, one)
    return tuple(dict.fromkeys(found))


def _check_kind(source: Source, kind: str) -> None:
    if source.model is None and kind not in ("savedmodel", "onnx", "tensorrt"):
        raise UsageError(f"a SavedModel cannot be exported to {kind}",
                         why="it holds a graph, not the layers",
                         remedy="name the Keras model that it was made from")  # fmt: skip
    if not source.bare and kind not in ("savedmodel", "onnx", "tensorrt"):
        raise UsageError(f"{kind} holds the model alone",
                         why="--preprocess and --postprocess become part of a graph",
                         remedy="export to savedmodel or onnx")  # fmt: skip


def _layers(source: Source, kind: Format, rules: Mapping[str, list[str]]) -> list[ObstacleFact]:
    refused = set(rules.get("layer", ()))
    return [
        ObstacleFact(format=kind, kind="layer", name=type(layer).__name__, layer=layer.name)
        for layer in inner_layers(source.model)
        if type(layer).__name__ in refused
    ]


def _types(
    source: Source, kind: Format, base: Format, rules: Mapping[str, list[str]]
) -> list[ObstacleFact]:
    """Return types of inputs and outputs, and for ONNX those that layers compute in."""
    seen = {spec.dtype.name: "" for spec in (*source.specs, *source.outputs.values())}
    if source.model is not None and base == "onnx":
        computing = set(compute_dtypes(source.model))
        for layer in inner_layers(source.model):
            dtype = str(layer.compute_dtype)
            if dtype in computing and not seen.get(dtype):
                seen[dtype] = layer.name
    refused = set(rules.get("dtype", ()))
    return [
        ObstacleFact(format=kind, kind="dtype", name=name, layer=layer)
        for name, layer in seen.items()
        if name in refused
    ]


def _operations(source: Source, kind: Format, nodes: list[Operation]) -> list[ObstacleFact]:
    layers = [layer.name for layer in inner_layers(source.model)]
    found = []
    for node in nodes:
        within = node.name.rpartition("/")[0] if layers else ""
        layer = layer_of(within, layers, source.model.name if layers else "")
        found.append(ObstacleFact(format=kind, kind="operation", name=node.op, layer=layer))
    return found


def _onnx_operations(source: Source) -> list[Operation]:
    """List the graph's operations without a handler of tf2onnx, after its own clean-up."""
    convert = tf2onnx_module()
    handlers = convert.handler.tf_op.create_mapping(convert.constants.PREFERRED_OPSET, [])
    nodes = [node for node in _frozen(source) if not node.op.startswith("_")]
    return [n for n in nodes if n.op not in handlers or n.op.startswith("LookupTable")]


def _frozen(source: Source) -> list[Any]:
    """Return the nodes that tf2onnx would convert, those in bodies of loops included."""
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


def _graph_operations(source: Source, patterns: list[str]) -> list[Operation]:
    """Return operations of the traced graph whose name is refused."""
    graph = source.function().get_concrete_function().graph.as_graph_def()
    nodes = [*graph.node, *(n for function in graph.library.function for n in function.node_def)]
    return [node for node in nodes if any(fnmatch.fnmatchcase(node.op, one) for one in patterns)]


def _litert(source: Source, kind: Format) -> list[ObstacleFact]:
    from tfdyno.runtime.litert.convert import check as refusals

    return [
        ObstacleFact(
            format=kind, name=one.operation, layer=one.layer, why=one.why, remedy=one.remedy
        )
        for one in refusals(source.model)
    ]


def tf2onnx_module() -> Value:
    """Return the converter, made to work with numpy 2; raises ``UsageError`` without it."""
    try:
        import onnx  # noqa: F401
        import tf2onnx
        import tf2onnx.convert
    except ImportError as error:
        remedy = "pip install 'tfdyno[export]', or name an interpreter that has it with --python"
        raise UsageError("ONNX needs tf2onnx", why=first_line(error), remedy=remedy) from None
    mend_tf2onnx()
    return tf2onnx
