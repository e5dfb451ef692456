"""What a file of a project imports from another file of it."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError
from tfdyno.rules.migration.bindings import LOCAL, Binding, Scope
from tfdyno.rules.migration.parse import syntax_tree
from tfdyno.rules.migration.walk import Own, walked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_FROM = re.compile(r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import\b", re.MULTILINE)


class Project:
    """The names that files end with; a file is read when another one imports from it."""

    def __init__(self, paths: Iterable[str], read: Callable[[str], str]) -> None:
        """Read nothing yet."""
        self._paths = frozenset(path for path in paths if path.endswith(".py"))
        self._read = read
        self._names: dict[str, Scope | None] = {}

    def imports_own(self, path: str, text: str) -> bool:
        """Return whether a file imports names from another file of the project."""
        return any(self._found(path, len(dots), name) for dots, name in _FROM.findall(text))

    def of(self, path: str) -> Own:
        """Return what the imports of a file mean, where they are of the project."""
        return lambda level, module: self._scope(self._found(path, level, module))

    def _found(self, path: str, level: int, module: str) -> str:
        """Return the file that an import in ``path`` is of; empty: none of the project."""
        folder = posixpath.dirname(path)
        for _ in range(level - 1):
            folder = posixpath.dirname(folder)
        name = module.replace(".", "/")
        for start in dict.fromkeys((folder,) if level else (folder, "")):
            base = posixpath.join(start, name) if name else start
            for candidate in (f"{base}.py", posixpath.join(base, "__init__.py")):
                if candidate in self._paths and candidate != path:
                    return candidate
        return ""

    def _scope(self, path: str) -> Scope | None:
        if not path:
            return None
        if path not in self._names:
            self._names[path] = None  # two files that import each other
            self._names[path] = self._walked(path)
        return self._names[path]

    def _walked(self, path: str) -> Scope | None:
        try:
            tree = syntax_tree(self._read(path))
            if isinstance(tree, str | SyntaxError):
                return None
            scope = walked(tree, self.of(path))[1]
        except (OSError, ValueError, RecursionError, TfdynoError):
            return None  # said where the file itself is looked at
        return _outside(scope, path)


def _outside(scope: Scope, path: str) -> Scope:
    """Return the names as another file sees them: functions of this one are not its own."""

    def named(local: str) -> str:
        inside = local.startswith(LOCAL) and ":" not in local
        return f"{LOCAL}{path}:{local.removeprefix(LOCAL)}" if inside else local

    def seen(one: Binding) -> Binding:
        return replace(one, path=named(one.path))

    return Scope(
        names={name: seen(one) for name, one in scope.names.items()},
        returns={named(name): one for name, one in scope.returns.items()},
        stars=scope.stars,
    )
