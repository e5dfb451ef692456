"""The modules beside a script that it imports, and those that they import."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def local_modules(script: Path) -> tuple[Path, ...]:
    """Return files of the script's own folder that it imports, directly or not, sorted; not itself.

    Found by reading, not by running: imports inside functions count, names that are put together
    at run time are not seen. Of a package all its ``__init__.py`` on the way count.

    Args:
        script: A Python file; one that cannot be read or parsed imports nothing.
    """
    return _all_from([script], script.parent)


def modules_of(dotted: str, root: Path) -> tuple[Path, ...]:
    """Return the files of a module of a folder, and those of the folder that it imports, sorted.

    Args:
        dotted: As ``package.module``.
        root: That it is imported from; empty where it holds no such module.
    """
    own = tuple(_files_of(tuple(dotted.split(".")), root))
    return tuple(sorted({*own, *_all_from(own, root)}))


def _all_from(files: Sequence[Path], root: Path) -> tuple[Path, ...]:
    """Return what files import of a folder, directly or not; they themselves do not count."""
    found: set[Path] = set()
    left = list(files)
    while left:
        file = left.pop()
        for dotted in _imported(file, root):
            for path in _files_of(dotted, root):
                if path not in found and path not in files:
                    found.add(path)
                    left.append(path)
    return tuple(sorted(found))


def _imported(file: Path, root: Path) -> Iterator[tuple[str, ...]]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    package = file.relative_to(root).parent.parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else ()
            dotted = (*base, *(node.module.split(".") if node.module else ()))
            yield dotted
            for alias in node.names:
                yield (*dotted, alias.name)


def _files_of(dotted: tuple[str, ...], root: Path) -> Iterator[Path]:
    """List a module's file and the packages on the way, as far as they are in the folder."""
    place = root
    for part in dotted:
        place = place / part
        for path in (place / "__init__.py", place.with_name(f"{part}.py")):
            if path.is_file():
                yield path
