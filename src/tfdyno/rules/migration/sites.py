"""The places of a Python file that rules look at: names, calls, imports, settings, in order."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tfdyno.rules.migration.bindings import Scope, constant

Kind = Literal["import", "name", "call", "set", "environment", "loop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One place in the file."""

    kind: Kind
    path: str
    """Dotted path as ``bindings.resolve`` gives it; the variable's name for ``environment``."""
    node: ast.AST
    line: int
    scope: Scope
    withs: tuple[str, ...] = ()
    """Paths of the ``with`` blocks around, outermost first."""
    branches: tuple[tuple[int, int], ...] = ()
    """``if`` around: which one (its line) and which arm of it."""
    loops: tuple[int, ...] = ()
    """Lines of the loops around."""
    is_guarded: bool = False
    """Whether the file itself asks for a version, or catches what is missing, around it."""
    text: str = ""
    """Value of an environment variable, where it is a constant."""

    @property
    def function(self) -> str:
        """Qualified name of the function or class around; empty at the module's level."""
        return self.scope.name

    def imports(self, *roots: str) -> bool:
        """Return whether it imports one of the packages, or something from it."""
        return self.kind == "import" and any(
            self.path == root or self.path.startswith(f"{root}.") for root in roots
        )

    def argument(self, name: str, position: int = -1) -> ast.expr | None:
        """Return the argument of a call, by keyword or else by position."""
        if not isinstance(self.node, ast.Call):
            return None
        named = {word.arg: word.value for word in self.node.keywords}
        if name in named:
            return named[name]
        given = self.node.args
        return given[position] if 0 <= position < len(given) else None

    def value(self, name: str, position: int = -1) -> object:
        """Return the constant that an argument is or stands for; None where it is none."""
        return constant(self.argument(name, position), self.scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A Python file, or the code cells of a notebook, as rules see it."""

    label: str
    """Its path as the user gave it."""
    lines: tuple[str, ...]
    sites: tuple[Site, ...]
    values: Mapping[str, str] = field(default_factory=dict)
    """What is known of the machine and told by the user, and ``keras_backend`` of the project."""
    legacy: Mapping[str, str] | None = None
    """What is known for ``tf.keras`` where TF_USE_LEGACY_KERAS makes it Keras 2; None: nowhere."""
    cells: tuple[tuple[int, int], ...] = ()
    """The cell of each line of a notebook and its line there, both from 1."""

    def values_at(self, path: str) -> Mapping[str, str]:
        """Return what is known of the Keras that a path lies in."""
        return self.legacy if self.legacy and path.startswith("tf.") else self.values

    def calls(self, *endings: str) -> Iterator[Site]:
        """Find calls whose path is, or ends with a dot and, one of the endings."""
        for site in self.sites:
            if site.kind == "call" and ends(site.path, *endings):
                yield site

    def imports(self, *roots: str) -> bool:
        """Return whether the file imports one of the packages, or something from it."""
        return any(site.imports(*roots) for site in self.sites)

    def source(self, line: int) -> str:
        """Write ``train.py:41``, or the cell and line of a notebook."""
        if self.cells and 0 < line <= len(self.cells):
            cell, inner = self.cells[line - 1]
            return f"{self.label}, cell {cell}, line {inner}"
        return f"{self.label}:{line}"

    def text(self, line: int) -> str:
        """Return the line of code, without its indentation."""
        return self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""


def ends(path: str, *endings: str) -> bool:
    """Return whether a dotted path is one of the endings or ends with it after a dot."""
    return any(path == ending or path.endswith(f".{ending}") for ending in endings)


def is_keras(path: str) -> bool:
    """Return whether the path lies in Keras, by itself or through TensorFlow."""
    return path.startswith(("keras.", "tf.keras."))


def is_exclusive(first: Site, second: Site) -> bool:
    """Return whether two places lie in different arms of one ``if``, so that a run meets one."""
    arms = dict(first.branches)
    return any(arms.get(line, arm) != arm for line, arm in second.branches)
