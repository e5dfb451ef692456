"""Python that asks for the numbers of a tensor in the step, where JAX has none yet."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tfdyno.rules.migration.bindings import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.rules.jax.places import Places

_PLAIN = frozenset("shape dtype ndim rank name get_shape size".split())
"""Attributes of a tensor, and functions of it, that are known before it runs."""
_NUMBERS = frozenset({"float", "int", "bool"})
_ASKS = frozenset("isinstance len hasattr getattr callable is_tensor is_keras_tensor".split())
_CONDITIONS = frozenset(
    "equal not_equal greater greater_equal less less_equal logical_and logical_or logical_not "
    "is_nan isnan is_finite isfinite".split()
)
"""Functions that give yes or no for each number."""
_OWN = frozenset("self cls training mask".split())
_GIVEN = frozenset("call update_state __call__".split())


def numbers_asked(places: Places) -> Iterator[tuple[ast.expr, str]]:
    """Find conditions on tensors and ``float(tensor)`` in the step, with what stands there."""
    for function, tensors in _functions(places):
        for node in ast.walk(function):
            yield from _asked(node, tensors, places)


def lists_computed(places: Places) -> Iterator[ast.BinOp]:
    """Find a tensor and a plain list that one operator takes."""
    for function, tensors in _functions(places):
        for node in ast.walk(function):
            if isinstance(node, ast.BinOp):
                both = (node.left, node.right)
                has_list = any(isinstance(one, ast.List | ast.Tuple) for one in both)
                if has_list and any(_is_tensor(one, tensors, places) for one in both):
                    yield node


def masks_taken(places: Places) -> Iterator[ast.Subscript]:
    """Find what a condition picks out of a tensor, ``x[x > 0]``: its shape depends on numbers."""
    for function, tensors in _functions(places):
        masks = {
            target.id
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and _is_mask(node.value, tensors, set(), places)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(function):
            if isinstance(node, ast.Subscript) and _is_mask(node.slice, tensors, masks, places):
                yield node


def _functions(places: Places) -> Iterator[tuple[ast.FunctionDef, set[str]]]:
    """List the functions of the step with the names that hold tensors in them."""
    for function in places.step:
        if isinstance(function, ast.FunctionDef):
            yield function, _tensors(function, places)


def _is_mask(node: ast.expr, tensors: set[str], masks: set[str], places: Places) -> bool:
    match node:
        case ast.Name(id=name):
            return name in masks
        case ast.Compare():
            return _is_tensor(node, tensors, places)
        case ast.Call():
            site = places.calls.get(id(node))
            path = site.path if site else ""
            is_known = path.startswith(("tf.", "keras.ops.")) and not path.startswith("tf.data.")
            return is_known and path.rpartition(".")[2] in _CONDITIONS
        case _:
            return False


def _asked(node: ast.AST, tensors: set[str], places: Places) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        if _is_tensor(node.test, tensors, places):
            word = "while" if isinstance(node, ast.While) else "if"
            yield node.test, word
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        if node.func.id in _NUMBERS and _is_tensor(node.args[0], tensors, places):
            yield node, f"{node.func.id}()"
        elif node.func.id == "range" and any(_is_tensor(a, tensors, places) for a in node.args):
            yield node, "range()"


def _tensors(function: ast.FunctionDef, places: Places) -> set[str]:
    """Name what holds a tensor: what the step is given, and what is computed from it."""
    names = [one.arg for one in function.args.args if one.arg not in _OWN]
    owner = places.class_of(function)
    if owner is not None:
        is_given = function.name in _GIVEN
        found = set(names[:1] if function.name == "call" else names) if is_given else set()
    else:
        found = set(names) & {"y_true", "y_pred"}
    for _ in range(2):  # names that are bound further down in a loop
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and _is_tensor(node.value, found, places):
                for target in node.targets:
                    parts = target.elts if isinstance(target, ast.Tuple) else [target]
                    found |= {one.id for one in parts if isinstance(one, ast.Name)}
    return found


def _is_tensor(node: ast.expr, tensors: set[str], places: Places) -> bool:
    """Return whether an expression is computed from the numbers of a tensor."""
    match node:
        case ast.Name(id=name):
            return name in tensors
        case ast.Attribute(value=value, attr=attr):
            return attr not in _PLAIN and _is_tensor(value, tensors, places)
        case ast.Call():
            return _is_tensor_call(node, tensors, places)
        case ast.Compare(left=left, ops=ops, comparators=others):
            if all(isinstance(one, ast.Is | ast.IsNot | ast.In | ast.NotIn) for one in ops):
                return False
            return any(_is_tensor(one, tensors, places) for one in (left, *others))
        case ast.BoolOp(values=parts):
            return any(_is_tensor(one, tensors, places) for one in parts)
        case ast.BinOp(left=left, right=right):
            return any(_is_tensor(one, tensors, places) for one in (left, right))
        case ast.UnaryOp(operand=inner) | ast.Subscript(value=inner):
            return _is_tensor(inner, tensors, places)
        case _:
            return False


def _is_tensor_call(node: ast.Call, tensors: set[str], places: Places) -> bool:
    if isinstance(node.func, ast.Name) and node.func.id in _ASKS | _NUMBERS:
        return False
    site = places.calls.get(id(node))
    path = site.path if site else ""
    last = path.rpartition(".")[2]
    if last in _PLAIN | _ASKS:
        return False
    if path.startswith(("tf.", "keras.ops.", "tf.keras.ops.")) and not path.endswith("()"):
        return not path.startswith(("tf.keras.", "tf.data.", "tf.config."))
    if isinstance(node.func, ast.Attribute):
        return _is_tensor(node.func.value, tensors, places)
    given = resolve(node.func, site.scope).path if site else ""
    return given.endswith("()") and any(_is_tensor(one, tensors, places) for one in node.args)
