"""What stands at the head of a migrated script instead of Horovod's import."""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

from tfdyno.rules.horovod.names import ROOT
from tfdyno.rules.rewrite.source_text import ALIAS, TENSORFLOW, Patch, name_of
from tfdyno.rules.tables import DATA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.rules.rewrite.draft import Draft
    from tfdyno.rules.rewrite.script import Script

KERAS = "keras"
_WARMUP = "LearningRateWarmupCallback"


class Names:
    """What the script is to call things.

    Attributes:
        is_scaled: Whether it asks for the number of replicas.
        is_numbered: Whether it asks for the number of its process.
    """

    def __init__(self, script: Script) -> None:
        words = script.words()
        self.tensorflow = name_of(script.tree, TENSORFLOW)
        own = name_of(script.tree, KERAS) or _imported_from(script.tree)
        self.keras = own or f"{self.tensorflow or ALIAS}.{KERAS}"
        self.replicas = next(one for one in ("replicas", "replica_count", "replicas_in_sync")
                             if one not in words)  # fmt: skip
        self.worker = next(one for one in ("worker", "worker_number", "own_worker")
                           if one not in words)  # fmt: skip
        self.is_scaled = self.is_numbered = False


def patches(draft: Draft, taken: Names, callbacks: frozenset[str]) -> list[Patch]:
    """Take the imports of Horovod out, and write what the rest of the script needs.

    Args:
        draft: Of the script; a statement with a person's places keeps the import.
        taken: The names, and which of them are used.
        callbacks: Classes that are written out.
    """
    script = draft.script
    imports = [
        node for node in ast.walk(script.tree) if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    places = [one for one in imports if one in script.tree.body]
    last = _last_of_first_block(script.tree, places)
    if not draft.hands:
        for node in imports:
            _without_horovod(draft, node)
    lines = _lines(taken, callbacks)
    if not lines:
        return []
    number = (last.end_lineno or last.lineno) if last else 0
    at = script.text.at(number + 1, 0) if number else 0
    if script.line(number + 1):  # code that follows at once
        lines += [""] * (1 + bool(callbacks))
    end = "\r\n" if "\r\n" in script.source else "\n"
    before = "" if script.source[:at].endswith("\n") or not at else end
    return [Patch(start=at, end=at, text=before + "".join(f"{one}{end}" for one in lines))]


def _lines(taken: Names, callbacks: frozenset[str]) -> list[str]:
    tensorflow = taken.tensorflow or ALIAS
    is_scaled = taken.is_scaled or _WARMUP in callbacks
    lines = []
    if is_scaled or taken.is_numbered or (callbacks and taken.keras.startswith(f"{ALIAS}.")):
        lines += [] if taken.tensorflow else [f"import {TENSORFLOW} as {ALIAS}"]
    if is_scaled or taken.is_numbered:
        lines += ["", f"strategy = {tensorflow}.distribute.get_strategy()  # that of tfdyno launch"]
    if is_scaled:
        lines += [f"{taken.replicas} = strategy.num_replicas_in_sync"]
    if taken.is_numbered:
        lines += [f'{taken.worker} = getattr(strategy.cluster_resolver, "task_id", None) or 0']
    for name in ("horovod_callbacks.txt",) * bool(callbacks) + ("horovod_warmup.txt",) * (
        _WARMUP in callbacks
    ):
        text = _template(name).replace("{keras}", taken.keras).replace("{replicas}", taken.replicas)
        lines += ["", "", *text.splitlines()]
    return lines


def _without_horovod(draft: Draft, node: ast.Import | ast.ImportFrom) -> None:
    names = [one.name for one in node.names]
    if isinstance(node, ast.ImportFrom):
        module = node.module or ""
        names = [f"{module}.{one}" for one in names] if not node.level else []
    gone = [one for one in names if one == ROOT or one.startswith(f"{ROOT}.")]
    if gone and len(gone) == len(names):
        draft.dropped.add(node)
    elif gone:
        kept = [one for one in node.names if one.name.partition(".")[0] != ROOT]
        start, end = draft.script.span(node)
        words = ", ".join(f"{one.name} as {one.asname}" if one.asname else one.name for one in kept)
        draft.patches.append(Patch(start=start, end=end, text=f"import {words}"))


def _last_of_first_block(tree: ast.Module, places: Sequence[ast.stmt]) -> ast.stmt | None:
    """Find the last import of Horovod's block; comments between do not end it."""
    own = [one for one in places if ROOT in ast.unparse(one)] or places
    if not own:
        return tree.body[0] if ast.get_docstring(tree) is not None else None
    at = tree.body.index(own[0])
    while at + 1 < len(tree.body) and isinstance(tree.body[at + 1], ast.Import | ast.ImportFrom):
        at += 1
    return tree.body[at]


def _imported_from(tree: ast.Module) -> str:
    """Read ``from tensorflow import keras``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == TENSORFLOW:
            for one in node.names:
                if one.name == KERAS:
                    return one.asname or one.name
    return ""


@cache
def _template(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")
