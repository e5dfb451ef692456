"""What a setting of the training looks like in the user's own script, as a changed source.

Only what can be told for sure is changed: the one call of ``compile``, the constant that is given
already, a line behind the imports. Where there are two such calls nothing says which is meant.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from tfdyno.rules.rewrite.source_text import (
    TENSORFLOW,
    Patch,
    SourceText,
    argument_patches,
    last_name,
    name_of,
    patched,
)
from tfdyno.rules.tables import read_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FILE = "script_rewrites.csv"
KERAS = "keras"
ANY = "*"
TAPE = "GradientTape"
OTHER_OWNERS = frozenset({"re", "regex", "torch"})
"""Modules with a ``compile`` that is not Keras'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rewrite:
    setting: str
    value: str
    """That the setting has; ``*``: any."""
    kind: str
    """``argument``: of the one call of that name, ``given``: only where it stands there already,
    ``constant``: what each call of these names is given first, ``attribute``: what is assigned to
    it, ``decorator``: of the one function under it that takes gradients, ``line``: behind the
    imports, where nothing else of the setting was found."""
    names: tuple[str, ...]
    text: str
    position: int


def script_rewritten(source: str, settings: Mapping[str, object]) -> str:
    """Return the source with what the settings mean in code; what cannot be told is left out.

    Args:
        source: Text of a Python file.
        settings: Values by flat name: ``{"steps_per_execution": 32}``.

    Raises:
        SyntaxError: It is not Python.
    """
    for name, value in settings.items():
        source = _with_setting(source, name, str(value))
    return source


def _with_setting(source: str, name: str, value: str) -> str:
    for rewrite in _rewrites():
        if rewrite.setting != name or rewrite.value not in (ANY, value):
            continue
        tree, text = ast.parse(source), SourceText(source)
        words = rewrite.text.replace("{value}", value)
        patches = list(_patches(rewrite, words, tree, text))
        if patches:
            return patched(source, patches)
    return source


def _patches(rewrite: _Rewrite, words: str, tree: ast.Module, text: SourceText) -> Iterator[Patch]:
    calls = _calls(tree, rewrite.names)
    if rewrite.kind == "argument":
        if len(calls) == 1:
            yield from argument_patches(calls[0], words, rewrite.position, text)
    elif rewrite.kind == "given":
        name, _, value = words.partition("=")
        given = [one.value for call in calls for one in call.keywords if one.arg == name]
        yield from _over(given if len(calls) == 1 else [], value, tree, text)
    elif rewrite.kind == "constant":
        yield from _over([call.args[0] for call in calls if call.args], words, tree, text)
    elif rewrite.kind == "attribute":
        set_ones = [node.value for node in ast.walk(tree)
                    if isinstance(node, ast.Assign) and _assigns(node, rewrite.names)]  # fmt: skip
        yield from _over(set_ones, words, tree, text)
    elif rewrite.kind == "decorator":
        yield from _decorated(rewrite, words, tree, text)
    else:
        yield from _line(rewrite.names[0], words, tree, text)


def _calls(tree: ast.Module, names: Sequence[str]) -> list[ast.Call]:
    """Return calls of a method or function of these names."""

    def is_meant(call: ast.Call) -> bool:
        function = call.func
        if isinstance(function, ast.Name):
            return function.id in names and function.id != "compile"  # Python's own
        if not isinstance(function, ast.Attribute):
            return False
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        return function.attr in names and owner not in OTHER_OWNERS

    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and is_meant(node)]


def _over(
    given: Sequence[ast.expr], words: str, tree: ast.Module, text: SourceText
) -> Iterator[Patch]:
    """Write the words over each constant, or over that which a name of the file stands for."""
    constants = {id(one): one for one in (_constant(each, tree) for each in given) if one}
    for one in constants.values():
        yield Patch(start=text.start(one), end=text.end(one), text=words)


def _constant(given: ast.expr, tree: ast.Module) -> ast.Constant | None:
    """Find ``32``, or the 32 of ``BATCH = 32`` where the file sets that name once."""
    if isinstance(given, ast.Constant):
        return given
    if not isinstance(given, ast.Name):
        return None
    stored = [one for one in ast.walk(tree) if isinstance(one, ast.Name) and one.id == given.id
              and isinstance(one.ctx, ast.Store)]  # fmt: skip
    if len(stored) != 1:
        return None
    for node in (one for one in tree.body if isinstance(one, ast.Assign)):
        for name, value in _assigned(node):
            if name is stored[0] and isinstance(value, ast.Constant):
                return value
    return None


def _assigned(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each name with its value, of ``ROWS, BATCH = 1000, 32`` as well."""
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def _assigns(node: ast.Assign, names: Sequence[str]) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr in names for one in node.targets)


def _decorated(
    rewrite: _Rewrite, words: str, tree: ast.Module, text: SourceText
) -> Iterator[Patch]:
    """Find the ``tf.function`` of a loop's step, written with brackets or without."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and _takes_gradients(node):
            found += [one for one in node.decorator_list if last_name(one) in rewrite.names]
    if len(found) != 1:
        return
    (one,) = found
    if isinstance(one, ast.Call):
        yield from argument_patches(one, words, rewrite.position, text)
    else:
        yield Patch(start=text.end(one), end=text.end(one), text=f"({words})")


def _takes_gradients(node: ast.FunctionDef) -> bool:
    return any(
        isinstance(one, ast.Attribute | ast.Name) and last_name(one) == TAPE
        for one in ast.walk(node)
    )


def _line(module: str, words: str, tree: ast.Module, text: SourceText) -> Iterator[Patch]:
    """Find a line behind the imports of which one gives the module a name."""
    places = {at: called for at, node in enumerate(tree.body) if (called := _called(node, module))}
    if not places:
        return
    at = min(places)
    while at + 1 < len(tree.body) and isinstance(tree.body[at + 1], ast.Import | ast.ImportFrom):
        at += 1
    number = tree.body[at].end_lineno
    assert number is not None
    line = text.line(number)
    if ";" in line:
        return
    end = "\r\n" if line.endswith("\r\n") else "\n"
    position = text.at(number, 0) + len(line.rstrip("\r\n"))
    called = places[min(places)]
    yield Patch(start=position, end=position,
                text=f"{end}{end}{words.replace('{module}', called)}")  # fmt: skip


def _called(node: ast.stmt, module: str) -> str:
    """Return what an import calls the module; Keras may be TensorFlow's."""
    alone = ast.Module(body=[node], type_ignores=[])
    if isinstance(node, ast.Import):
        called = name_of(alone, module)
        own = name_of(alone, TENSORFLOW)
        return called or (f"{own}.{KERAS}" if own and module == KERAS else "")
    if isinstance(node, ast.ImportFrom) and node.module == TENSORFLOW:
        return next((one.asname or one.name for one in node.names if one.name == module), "")
    return ""


@cache
def _rewrites() -> tuple[_Rewrite, ...]:
    columns = ("setting", "value", "kind", "names", "text", "position", "source")
    return tuple(
        _Rewrite(
            setting=row["setting"],
            value=row["value"],
            kind=row["kind"],
            names=tuple(row["names"].split()),
            text=row["text"],
            position=int(row["position"]),
        )
        for row in read_rows(FILE, columns)
    )
