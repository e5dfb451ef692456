"""What a model and its step are made of, as far as it may hold the step back.

Asked for after a step has run: its graphs are then there, and the variables of its optimizer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfdyno.process.own_lines import code_place, own_file, place_of
from tfdyno.runtime.base.keras_internals import all_layers, inner_layers
from tfdyno.runtime.base.tensorflow_internals import python_function_of

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import (
        Function,
        Graph,
        Model,
        Operation,
        Structure,
        Value,
        Variable,
    )

_PYTHON = {
    "EagerPyFunc": "py_function",
    "PyFunc": "numpy_function",
    "PyFuncStateless": "numpy_function",
}
_WIDE = (tf.float64, tf.complex128)
_MOST_OPERATIONS = 5
_DEEP = 6
_FUNCTION = type(tf.function(lambda: None))


def facts_of(
    model: Model, arguments: Structure = None, *, function: Function = None
) -> dict[str, Any]:  # fmt: skip
    """Return fields of ``StepFacts`` that the model tells; nothing runs.

    Args:
        model: A Keras model that has run a step; None for a loop without one.
        arguments: Of ``fit`` by name, or what the step of a loop is called with.
        function: The step of a loop of the user's own, a ``tf.function`` or a plain function.

    Returns:
        ``precision, execution, variable_count, parameter_bytes, devices, float64, python_steps``,
        and ``float64_names``, the operations in the step's graphs that give 64-bit floats.
    """
    variables = _variables(model, function)
    graphs = list(step_graphs(model, function))
    operations = [one for graph in graphs for one in graph.get_operations()]
    wide = [one for one in operations if any(out.dtype in _WIDE for out in one.outputs)]
    trainable = [one for one in variables if getattr(one, "trainable", False)]
    return {
        "precision": _precision(model, trainable),
        "execution": _execution(model, function, graphs),
        "variable_count": len(variables),
        "parameter_bytes": sum(map(_bytes, trainable)),
        "devices": dict(Counter(_device(one) for one in variables)),
        "float64": (
            *(_path(one) for one in variables if tf.as_dtype(one.dtype) in _WIDE),
            *_wide_inputs(arguments),
            *_wide_operations(wide),
        ),
        "python_steps": tuple(dict.fromkeys(_python_steps(model, operations))),
        "float64_names": frozenset(one.name for one in wide),
    }


def step_graphs(model: Model, function: Function = None) -> Iterator[Any]:
    """Yield graphs of all traces of a model's train step or a function, with those it calls."""
    begin = function if function is not None else getattr(model, "train_function", None)
    waiting = [
        concrete.graph
        for one in _functions(begin)
        for concrete in one._list_all_concrete_functions()
    ]
    seen: set[str] = set()
    while waiting:
        graph = waiting.pop()
        if graph.name in seen:
            continue
        seen.add(graph.name)
        yield graph
        waiting += [called for called in _called(graph) if called is not None]


def _functions(begin: Value) -> list[Any]:
    """Return the ``tf.function`` objects that a Python function is, or closes over."""
    found: list[Any] = []
    waiting, seen = [(begin, 0)], set()
    while waiting:
        one, depth = waiting.pop()
        if id(one) in seen or depth > _DEEP or one is None:
            continue
        seen.add(id(one))
        if isinstance(one, _FUNCTION):
            found.append(one)
            waiting.append((one._python_function, depth + 1))
        one = getattr(one, "__func__", one)
        for cell in getattr(one, "__closure__", None) or ():
            try:
                content = cell.cell_contents
            except ValueError:  # empty so far
                continue
            if callable(content) and not isinstance(content, type | keras.layers.Layer):
                waiting.append((content, depth + 1))
    return found


def _called(graph: Graph) -> list[Any]:
    """Return graphs of the functions that a graph holds."""
    held = getattr(graph, "_functions", {})
    return [
        getattr(one, "graph", None) for one in (held.values() if hasattr(held, "values") else ())
    ]


def _variables(model: Model, function: Function) -> list[Any]:
    if model is not None:
        found = list(model.variables)
        optimizer = getattr(model, "optimizer", None)
        found += list(getattr(optimizer, "variables", ()) or ())
    else:
        found = [
            one
            for each in _functions(function)
            for concrete in each._list_all_concrete_functions()
            for one in concrete.graph.variables
        ]
    return list({id(_inner(one)): one for one in found}.values())


def _precision(model: Model, trainable: list[Any]) -> str:
    """Return the policy of most layers with weights; without a model the variables' dtype."""
    if all_layers(model):
        parts = [one for one in inner_layers(model) if one.weights]
        names = Counter(one.dtype_policy.name for one in parts or [model])
        return str(names.most_common(1)[0][0])
    kinds = Counter(tf.as_dtype(one.dtype).name for one in trainable)
    return kinds.most_common(1)[0][0] if kinds else "float32"


def _execution(model: Model, function: Function, graphs: list[Any]) -> str:
    if tf.config.functions_run_eagerly() or getattr(model, "run_eagerly", False):
        return "eager"
    begin = function if function is not None else getattr(model, "train_function", None)
    if any(one._jit_compile for one in _functions(begin)):
        return "xla"
    if function is not None and not graphs:
        return "eager"
    return "graph"


def _wide_inputs(arguments: Structure) -> Iterator[str]:
    """Leave arrays out where ``fit`` gets them: Keras turns them into its own float."""
    named = arguments if isinstance(arguments, Mapping) else {}
    for name, value in named.items():
        spec = getattr(value, "element_spec", None)
        if spec is None and not isinstance(value, tf.Tensor):
            continue
        leaves = tf.nest.flatten(spec) if spec is not None else [value]
        for number, one in enumerate(leaves):
            if getattr(one, "dtype", None) in _WIDE:
                yield f"input {name}" if len(leaves) == 1 else f"input {name}[{number}]"
    if arguments is None or named:
        return
    for number, one in enumerate(tf.nest.flatten(arguments)):
        spec = getattr(one, "element_spec", one)
        for leaf in tf.nest.flatten(spec):
            dtype = getattr(leaf, "dtype", None)
            try:
                is_wide = dtype is not None and tf.as_dtype(dtype) in _WIDE
            except TypeError:
                is_wide = False
            if is_wide and not isinstance(leaf, tf.Variable):
                yield f"input {number}"


def _wide_operations(wide: list[Any]) -> Iterator[str]:
    """Find a few operations of whole tensors, by the user's line that asked for them."""
    found: dict[str, str] = {}
    for one in wide:
        place = _line(one)
        if place and any(out.shape.rank != 0 for out in one.outputs if out.dtype in _WIDE):
            found.setdefault(place, one.type)
    for place, kind in list(found.items())[:_MOST_OPERATIONS]:
        yield f"operation {kind} in {place}"


def _python_steps(model: Model, operations: list[Any]) -> Iterator[str]:
    if getattr(model, "run_eagerly", False):
        yield "run_eagerly"
    elif tf.config.functions_run_eagerly():
        yield "run_functions_eagerly"
    for one in operations:
        if one.type in _PYTHON:
            place = _line(one) or _registered(one)
            yield f"{_PYTHON[one.type]} in {place}" if place else _PYTHON[one.type]


def _line(operation: Operation) -> str:
    """Return the user's line that made an operation of a graph; empty where it is not known."""
    for frame in reversed(operation.traceback or ()):
        filename, line = frame[0], frame[1]
        if own_file(filename):
            return place_of(filename, line)
    return ""


def _registered(operation: Operation) -> str:
    """Find where the Python function behind a ``PyFunc`` operation is defined."""
    called = python_function_of(operation.get_attr("token"))
    return code_place(called.__code__) if isinstance(called, FunctionType) else ""


def _device(variable: Variable) -> str:
    """Return ``CPU:0``; of a mirrored variable that of its first part."""
    name = str(getattr(_inner(variable), "device", "") or "")
    return ":".join(name.split("/")[-1].replace("device:", "").split(":")[-2:]) or "unknown"


def _inner(variable: Variable) -> Value:
    """Return TensorFlow's variable inside of Keras' own."""
    return (
        getattr(variable, "value", variable) if isinstance(variable, keras.Variable) else variable
    )


def _path(variable: Variable) -> str:
    return str(getattr(variable, "path", "") or variable.name).removesuffix(":0")


def _bytes(variable: Variable) -> int:
    count = math.prod(int(size or 1) for size in variable.shape)
    return count * int(tf.as_dtype(variable.dtype).size)
