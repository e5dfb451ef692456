"""What a name of a Python file stands for: TensorFlow, or a ``keras.Sequential()``."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tfdyno.rules.tables import read_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LOCAL = "@"
"""Begins the path of a function or class of the file itself."""
UNKNOWN = "?"
"""Stands for a receiver of a method of which nothing is known: ``?.fit``."""
_SHORT = (
    ("tensorflow.compat.v2", "tf"),
    ("tensorflow._api.v2", "tf"),
    ("tensorflow", "tf"),
    ("tf.compat.v1.keras", "tf.keras"),
    ("keras.api", "keras"),
)
_DEEPEST = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a name stands for where it is bound."""

    path: str = ""
    """Dotted path, with ``()`` for what a call returns; empty: not known."""
    withs: tuple[str, ...] = ()
    """Paths of the ``with`` blocks around the assignment."""
    constant: object = None
    """Value, where it is a plain constant."""


@dataclass(slots=True, kw_only=True)
class Scope:
    """Names of a module, class or function, and what lies around it."""

    name: str = ""
    """Qualified name; empty for the module."""
    is_class: bool = False
    parent: Scope | None = None
    names: dict[str, Binding] = field(default_factory=dict)
    returns: dict[str, Binding] = field(default_factory=dict)
    """Function of the file to what it returns; one table for the whole file."""
    stars: list[str] = field(default_factory=list)
    """Packages of which the file imports all names, the last one last."""

    def find(self, name: str, *, from_inside: bool = False) -> Binding:
        """Find the binding of a name, of this scope or one around it; empty where unknown."""
        if name in self.names and not (self.is_class and from_inside):
            return self.names[name]
        if self.parent:
            return self.parent.find(name, from_inside=True)
        return Binding(path=starred(name, self.stars))

    def owner(self) -> Scope:
        """Return the nearest class around, which keeps ``self.x``; this scope without one."""
        scope: Scope | None = self
        while scope and not scope.is_class:
            scope = scope.parent
        return scope or self


def starred(name: str, packages: Sequence[str]) -> str:
    """Return the path of a name that came by ``from package import *``; empty where none has it."""
    for package in reversed(packages):
        if name in _names_of().get(package.removeprefix("tf."), ()):
            return f"{package}.{name}"
    return ""


@functools.cache
def _names_of() -> dict[str, frozenset[str]]:
    rows = read_rows("code_star_names.csv", ("package", "names", "source"))
    return {row["package"]: frozenset(row["names"].split()) for row in rows}


def canonical(path: str) -> str:
    """Return a dotted path with TensorFlow's and Keras's other names made one."""
    for long, short in _SHORT:
        if path == long or path.startswith((f"{long}.", f"{long}(")):
            return canonical(short + path[len(long) :])
    return path


def resolve(node: ast.AST, scope: Scope, depth: int = 0) -> Binding:
    """Return what an expression stands for; an empty binding where that cannot be told."""
    if depth > _DEEPEST:
        return Binding()
    match node:
        case ast.Constant(value=value):
            return Binding(constant=value)
        case ast.Name(id=name):
            return scope.find(name)
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=attribute):
            return scope.owner().find(f"self.{attribute}")
        case ast.Attribute(value=value, attr=attribute):
            base = resolve(value, scope, depth + 1)
            return _extend(base, f".{attribute}")
        case ast.Call(func=function):
            base = resolve(function, scope, depth + 1)
            if base.path.startswith(LOCAL):
                return scope.returns.get(base.path, _extend(base, "()"))
            return _extend(base, "()")
        case ast.IfExp(body=body, orelse=orelse):
            first = resolve(body, scope, depth + 1)
            return first if first.path else resolve(orelse, scope, depth + 1)
        case ast.NamedExpr(value=value) | ast.Await(value=value):
            return resolve(value, scope, depth + 1)
        case _:
            return Binding()


def _extend(base: Binding, end: str) -> Binding:
    if not base.path:
        return Binding()
    return Binding(path=canonical(base.path + end), withs=base.withs)


def constant(node: ast.AST | None, scope: Scope) -> object:
    """Return the value of a constant or of a name bound to one; None where it is neither."""
    return None if node is None else resolve(node, scope).constant


def preload(scope: Scope, known: Mapping[str, Mapping[str, Binding]]) -> Scope:
    """Return the scope with the names that an earlier walk over the file ended with."""
    scope.names = dict(known.get(scope.name, {}))
    return scope
