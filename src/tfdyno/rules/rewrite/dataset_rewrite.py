"""What a setting of the input pipeline looks like in the user's own code, as a changed source."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from tfdyno.rules.rewrite.source_text import (
    ALIAS,
    TENSORFLOW,
    Patch,
    SourceText,
    argument_patches,
    name_of,
    patched,
)
from tfdyno.rules.tables import read_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.measure.step_facts import StageFacts

FILE = "dataset_rewrites.csv"
RANDOM = ("Random", "random")
"""What the name of an operation holds that gives something else each time."""
NOT_FIXED = frozenset({"shuffle", "repeat", "from_generator", "random", "shuffle_and_repeat"})
"""Stages from which on the elements are not the same in every epoch; nothing is cached there."""
Place = tuple[str, int]
"""File as the facts name it, and line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change of a call: an argument more, or a call after it."""

    line: int
    """Where the name of the method stands."""
    method: str
    kind: Literal["argument", "call"]
    text: str
    position: int = 0
    """The position of the argument where it is given without its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rewrite:
    setting: str
    stages: tuple[str, ...]
    kind: Literal["argument", "call"]
    text: str
    place: str
    position: int


def edits(stages: Sequence[StageFacts], settings: Iterable[str]) -> dict[str, tuple[Edit, ...]]:
    """Return what to change in which file, so that the code says what the settings do.

    Args:
        stages: Of the pipeline, sources first; only those with a place can be found in the code.
        settings: Flat names of the settings that are on: ``input.prefetch``.

    Returns:
        By the file as the places of the stages name it; in the order of the lines.
    """
    found: dict[str, list[Edit]] = {}
    wanted = set(settings)
    for rewrite in (one for one in _rewrites() if one.setting in wanted):
        for stage in _stages(rewrite, stages):
            file, line = place_of(stage.place)
            edit = Edit(line=line, method=stage.kind, kind=rewrite.kind, text=rewrite.text,
                        position=rewrite.position)  # fmt: skip
            kept = found.setdefault(file, [])
            if edit not in kept:
                kept.append(edit)
    return {file: tuple(sorted(of, key=lambda one: one.line)) for file, of in found.items()}


def place_of(text: str) -> Place:
    """Read file and line of ``train.py:41``; line 0 where there is none."""
    file, _, line = text.rpartition(":")
    return (file, int(line)) if file and line.isdecimal() else (text, 0)


def rewritten(source: str, changes: Iterable[Edit]) -> str:
    """Return the source with the changes; what is not found, or stands there already, is left out.

    Only calls are touched: comments, quotes and line breaks stay as they are.

    Args:
        source: Text of a Python file.
        changes: What to change on which line.

    Raises:
        SyntaxError: It is not Python.
    """
    tree = ast.parse(source)
    alias = name_of(tree, TENSORFLOW, ALIAS)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    text = SourceText(source)
    patches: list[Patch] = []
    for change in changes:
        words = change.text.replace(f"{ALIAS}.", f"{alias}.")
        for call in _named(calls, change):
            if change.kind == "argument":
                patches += argument_patches(call, words, change.position, text)
            elif not _is_followed(calls, call, words):
                end = text.end(call)
                patches.append(Patch(start=end, end=end, text=_as_call(call, words, text)))
    return patched(source, patches)


def _stages(rewrite: _Rewrite, stages: Sequence[StageFacts]) -> list[StageFacts]:
    """Return the stages that a rewrite is about, of those that the code shows."""
    placed = [one for one in stages if place_of(one.place)[1]]
    if rewrite.place == "last":
        return placed[-1:]
    if rewrite.place == "last_fixed":
        fixed = []
        for one in stages:
            draws = any(_is_random(name) for name in one.operations)
            if one.kind in NOT_FIXED or one.runs_python or draws:
                break
            fixed.append(one)
        return [one for one in fixed if one in placed and one.kind in rewrite.stages][-1:]
    found = [one for one in placed if one.kind in rewrite.stages]
    return found if rewrite.place == "each" else [one for one in found if one.parallel_calls == 1]


def _is_random(operation: str) -> bool:
    stateless = operation.startswith("Stateless")
    return not stateless and any(word in operation for word in RANDOM)


def _named(calls: Sequence[ast.Call], change: Edit) -> list[ast.Call]:
    """Return calls of the method whose name stands on the line, or that begin or end there."""

    def is_method(call: ast.Call) -> bool:
        return isinstance(call.func, ast.Attribute) and call.func.attr == change.method

    found = [call for call in calls if is_method(call) and call.func.end_lineno == change.line]
    if found:
        return found
    around = [c for c in calls if is_method(c) and c.lineno <= change.line <= (c.end_lineno or 0)]
    return sorted(around, key=lambda call: (call.end_lineno or 0) - call.lineno)[:1]


def _is_followed(calls: Sequence[ast.Call], call: ast.Call, text: str) -> bool:
    """Return whether the method is called on its result already."""
    method = text.partition("(")[0]
    return any(
        isinstance(one.func, ast.Attribute) and one.func.attr == method and one.func.value is call
        for one in calls
    )


def _as_call(call: ast.Call, words: str, text: SourceText) -> str:
    """Write it on a line of its own where the chain has one call a line."""
    assert isinstance(call.func, ast.Attribute)
    before = text.line(call.func.end_lineno or call.lineno)
    indent = before[: len(before) - len(before.lstrip())]
    end = "\r\n" if before.endswith("\r\n") else "\n"
    return f"{end}{indent}.{words}" if before.lstrip().startswith(".") else f".{words}"


@cache
def _rewrites() -> tuple[_Rewrite, ...]:
    columns = ("setting", "stages", "edit", "text", "place", "position", "source")
    kinds: dict[str, Literal["argument", "call"]] = {"argument": "argument", "call": "call"}
    return tuple(
        _Rewrite(
            setting=row["setting"],
            stages=tuple(row["stages"].split()),
            kind=kinds[row["edit"]],
            text=row["text"],
            place=row["place"],
            position=int(row["position"]),
        )
        for row in read_rows(FILE, columns)
    )
