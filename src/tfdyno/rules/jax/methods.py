"""What arrays of JAX do not have: methods of TensorFlow's tensors, and its kind of train_step."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tfdyno.rules.jax.finds import Find
from tfdyno.rules.migration.bindings import LOCAL, UNKNOWN, resolve
from tfdyno.rules.migration.sites import is_keras
from tfdyno.rules.migration.walk import asks_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.rules.jax.finds import File
    from tfdyno.rules.migration.sites import Site

_STEPS = {"train_step": 2, "test_step": 2, "predict_step": 2}
"""Methods that take one argument on TensorFlow, and a state before it on JAX."""
_MAKERS = ("make_train_function", "make_test_function", "make_predict_function")
_VARIABLES = frozenset(
    "learning_rate iterations lr momentum variable weights kernel bias variables trainable_weights "
    "trainable_variables non_trainable_variables non_trainable_weights".split()
)
"""Attributes that hold variables of Keras, which have ``numpy()`` on every backend."""
_SHAPES = ("as_list", "get_shape", "set_shape", "eval", "ref")
_FUNCTION = "tf.function"


def find(file: File) -> Iterator[Find]:
    """Find methods of tensors, train_step and the like, and functions round Keras."""
    for site in file.places.calls.values():
        last = site.path.rpartition(".")[2]
        if last == "numpy":
            yield from _numpy(site, file)
        elif last in _SHAPES and not site.is_guarded and file.places.of(site.node) == "step":
            yield _shape(site, last)
    for node in file.places.classes.values():
        if file.places.is_traced(node):
            yield from _steps(node)
            if ".metrics." in (base := file.places.base(node)) or base.endswith(".Metric"):
                yield from _results(node)
    yield from _functions(file)


def _steps(node: ast.ClassDef) -> Iterator[Find]:
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name in (*_STEPS, *_MAKERS):
            given = method.args
            if method.name in _MAKERS:
                stops = not _asks_keras(method)
            else:
                stops = len(given.args) <= _STEPS[method.name] and not given.vararg
            if stops:
                yield Find(cause="train_step", node=method, name=method.name)


def _asks_keras(method: ast.FunctionDef) -> bool:
    """Return whether a method has Keras make the function, as the backend at hand needs it."""
    asked = f"super().{method.name}"
    calls = (one.func for one in ast.walk(method) if isinstance(one, ast.Call))
    return any(ast.unparse(one) == asked for one in calls)


def _results(node: ast.ClassDef) -> Iterator[Find]:
    """Find a metric that returns a variable of its own as it is."""
    for method in node.body:
        if not isinstance(method, ast.FunctionDef) or method.name != "result":
            continue
        for one in ast.walk(method):
            match one:
                case ast.Return(value=ast.Attribute(value=ast.Name(id="self"), attr=attr) as value):
                    yield Find(
                        cause="metric_result", node=value, name=f"self.{attr}", is_safe=True,
                        instead=f"keras.ops.convert_to_tensor(self.{attr})",
                    )  # fmt: skip


def _shape(site: Site, name: str) -> Find:
    node = site.node
    assert isinstance(node, ast.Call)
    is_safe = name == "get_shape" or (name == "as_list" and _shaped(node) is not None)
    if name == "as_list":
        instead = "list(x.shape)"
    else:
        instead = "x.shape" if name == "get_shape" else "leave it out"
    return Find(
        cause="tensor_method", node=node, name=f".{name}()", instead=instead, is_safe=is_safe
    )  # fmt: skip


def _shaped(node: ast.Call) -> ast.expr | None:
    """Return ``x`` of ``x.shape.as_list()`` or ``x.get_shape().as_list()``."""
    match node.func:
        case ast.Attribute(value=ast.Attribute(value=inner, attr="shape")):
            return inner
        case ast.Attribute(value=ast.Call(func=ast.Attribute(value=inner, attr="get_shape"))):
            return inner
        case _:
            return None


def shape_texts(node: ast.Call) -> tuple[ast.expr, str, str] | None:
    """Return what stays of a question for a shape, and what stands before and behind it."""
    name = getattr(node.func, "attr", "")
    if name == "as_list":
        inner = _shaped(node)
        return (inner, "list(", ".shape)") if inner is not None else None
    if name == "get_shape" and isinstance(node.func, ast.Attribute):
        return node.func.value, "", ".shape"
    return None


def _numpy(site: Site, file: File) -> Iterator[Find]:
    node = site.node
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Attribute)
    where = file.places.of(node)
    if where == "step":
        yield Find(cause="tensor_method", node=node, name=".numpy()", instead="leave it out")
        return
    if where == "data" or node in file.places.outside or _is_outside(node, file):
        return
    if _is_jax_array(site, node.func.value, file):
        yield Find(
            cause="tensor_method", node=node, name=".numpy()", is_safe=True,
            instead="keras.ops.convert_to_numpy(x)",
        )  # fmt: skip


def _is_outside(node: ast.AST, file: File) -> bool:
    """Return whether Python runs it beside the graphs, or only where the method is there."""
    return any(
        one in file.places.outside or (isinstance(one, ast.IfExp) and asks_version(one.test))
        for one in file.places.around(node)
    )


def _is_jax_array(site: Site, holder: ast.expr, file: File) -> bool:
    """Return whether an array of Keras may be meant; what a data set gives is TensorFlow's."""
    path = site.path.removesuffix(".numpy")
    if path != UNKNOWN:
        if is_keras(path):
            last = path.removesuffix("()").rpartition(".")[2]
            is_made = path.endswith("()") and not path.endswith(")()") and last[:1].isupper()
            return path.endswith("()") and not is_made
        return path.startswith(LOCAL)
    if any(getattr(one, "attr", "") in _VARIABLES for one in ast.walk(holder)):
        return False
    name = holder
    while isinstance(name, ast.Attribute | ast.Subscript | ast.Call):
        name = name.func if isinstance(name, ast.Call) else name.value
    return not (isinstance(name, ast.Name) and _is_of_data(name, file))


def _is_of_data(name: ast.Name, file: File) -> bool:
    """Return whether a name is of a loop, of ``next(iter(…))``, or a variable, which has it."""
    function = file.places.function(name)
    for node in ast.walk(function or file.script.tree):
        if isinstance(node, ast.For | ast.comprehension) and _binds(node.target, name.id):
            return not _gives_arrays(node.iter, file)
        if isinstance(node, ast.Assign) and any(_binds(one, name.id) for one in node.targets):
            value = node.value
            if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "next":
                return True
            if isinstance(value, ast.Attribute) and value.attr in _VARIABLES:
                return True
    return False


def _gives_arrays(node: ast.expr, file: File) -> bool:
    """Return whether a loop goes over what Keras computed: ``for one in model(x)``."""
    root = file.places.root
    parts = [node, *(node.args if isinstance(node, ast.Call) else ())]
    paths = [resolve(one, root).path for one in parts] if root else []
    return any(is_keras(path) and path.endswith("()()") for path in paths)


def _binds(target: ast.expr, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(target))


def _functions(file: File) -> Iterator[Find]:
    """Find compiled functions of TensorFlow that call something of Keras, line by line."""
    for site in file.script.sites:
        if site.path != _FUNCTION or site.kind not in ("name", "call") or site.is_guarded:
            continue
        node = site.node
        assert isinstance(node, ast.expr)
        target = _wrapped(site, file)
        if target is None or target in file.places.data or file.places.of(node) == "step":
            continue
        if reason := _keras_in(target, file, set()):
            yield Find(
                cause="loop_function" if reason == "keras" else "unread_function",
                node=node, name=_FUNCTION,
            )  # fmt: skip


def _wrapped(site: Site, file: File) -> ast.AST | None:
    node = site.node
    for one in file.places.around(node):
        if node in getattr(one, "decorator_list", ()):
            return one
        if isinstance(one, ast.stmt):
            break
    if isinstance(node, ast.Call) and node.args:
        path = resolve(node.args[0], site.scope).path
        return file.places.target(node.args[0], site.scope) or (node if is_keras(path) else None)
    return None


def _keras_in(function: ast.AST, file: File, seen: set[ast.AST]) -> str:
    """Return ``keras`` where something of Keras is called, ``unknown`` where that may be."""
    seen.add(function)
    given = {one.arg for one in getattr(getattr(function, "args", None), "args", ())}
    told = ""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        site = file.places.calls.get(id(node))
        path = site.path if site else ""
        if is_keras(path) and (")" in path or ".ops." in path or ".losses." in path):
            return "keras"
        if path.startswith("?.") and _is_self(node):
            told = "unknown"
        if isinstance(node.func, ast.Name) and node.func.id in given:
            told = "unknown"
        other = file.places.target(node.func, site.scope) if site else None
        if other is not None and other not in seen:
            told = _keras_in(other, file, seen) or told
            if told == "keras":
                return told
    return told


def _is_self(node: ast.Call) -> bool:
    """Return whether what an object keeps is called: ``self.model(x)``."""
    match node.func:
        case ast.Attribute(value=ast.Name(id="self")):
            return True
        case _:
            return False
