"""What is found at one place of a script, with all that a rewrite of it needs."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tfdyno.rules.jax.places import Places
from tfdyno.rules.jax.tables import Operation
from tfdyno.rules.rewrite.script import Script

_FIXED = frozenset({"shape", "newshape", "dims", "repeats", "multiples", "noise_shape"})
_SHAPED = ("zeros", "ones", "fill", "reshape", "broadcast_to", "normal", "uniform", "tile", "full")


@dataclass(frozen=True, slots=True, kw_only=True)
class Find:
    """One place."""

    cause: str
    """Of ``data/move.toml``, without the group."""
    node: ast.expr | ast.stmt
    name: str
    """What stands there, in short."""
    instead: str = ""
    is_safe: bool = False
    """Whether ``migrate`` changes it."""
    row: Operation | None = None

    @property
    def line(self) -> int:
        """The line of the script, from 1."""
        return self.node.lineno


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A Python file as the rules here see it."""

    script: Script
    places: Places

    def seeded_init(self, node: ast.AST) -> ast.Expr | None:
        """Return ``super().__init__(...)`` of the class around, behind which a seed can be kept."""
        owner = self.places.class_of(node)
        for method in owner.body if owner else ():
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                for statement in method.body:
                    if isinstance(statement, ast.Expr) and _is_super(statement.value):
                        return statement
        return None


def _is_super(node: ast.expr) -> bool:
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__")
        ):
            return True
        case _:
            return False


def is_size(node: ast.expr, file: File) -> bool:
    """Return whether of a shape only single numbers are taken, or it is a shape again.

    Keras gives a shape as a tuple of numbers, with which nothing can be computed.
    """
    parent = file.places.parents.get(node)
    match parent:
        case ast.Subscript(value=value, slice=index) if value is node:
            return _is_number(index)
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
            function = file.places.function(node)
            loads = [
                one for one in ast.walk(function or file.script.tree)
                if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
            ]  # fmt: skip
            return all(is_size(one, file) for one in loads)
        case _:
            return is_in_shape(node, file)


def is_in_shape(node: ast.expr, file: File) -> bool:
    """Return whether a tensor is handed over as a shape, which JAX must know before it runs."""
    match file.places.parents.get(node):
        case ast.Call(func=ast.Attribute(attr=attr), args=args) if node in args:
            return attr in _SHAPED and args.index(node) == int(attr in ("reshape", "broadcast_to"))
        case ast.keyword(arg=arg):
            return arg in _FIXED
        case _:
            return False


def _is_number(index: ast.expr) -> bool:
    if isinstance(index, ast.UnaryOp):
        index = index.operand
    return isinstance(index, ast.Constant) and isinstance(index.value, int)
