"""What of a script runs on TensorFlow alone, by its source: for those who want another backend."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tfdyno.rules.rewrite.source_text import last_name

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["loop", "function", "strategy", "operation"]
_CALLS = frozenset({"call", "train_step", "test_step"})
"""Methods of layers and models that run in the step."""
_HARMLESS = frozenset(
    "float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool "
    "string data io keras Tensor TensorShape TensorSpec newaxis".split()
)
"""Names below ``tf`` that are no operations."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class TensorflowUse:
    """One place of a script."""

    line: int
    name: str
    """The name as written, with ``tf`` for TensorFlow: ``tf.nn.relu``."""
    kind: Kind


def tensorflow_uses(source: str) -> tuple[TensorflowUse, ...]:
    """Return the places of a script that only TensorFlow runs; none where it does not parse.

    What is called outside of a layer's ``call`` is left alone: it may prepare data.

    Args:
        source: The text of the script.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ()  # running it will tell
    names = {alias: path for node in ast.walk(tree) for alias, path in _imported(node)}
    if not names:
        return ()
    found = {use for node in ast.walk(tree) if (use := _anywhere(node, names))}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found |= set(_in_class(node, names))
        elif isinstance(node, ast.Call) and last_name(node) == "Lambda":
            found |= {use for argument in node.args for use in _operations(argument, names)}
    return tuple(sorted(found))


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Map names in the script to what they mean: ``("tf", "tf")``, ``("relu", "tf.nn.relu")``."""
    if isinstance(node, ast.Import):
        for one in node.names:
            if one.name.partition(".")[0] == "tensorflow":
                path = "tf" + one.name.removeprefix("tensorflow") * bool(one.asname)
                yield one.asname or "tensorflow", path
    if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "tensorflow":
        base = "tf" + (node.module or "").removeprefix("tensorflow")
        for one in node.names:
            yield one.asname or one.name, f"{base}.{one.name}"


def _path(node: ast.AST, names: dict[str, str]) -> str:
    """Return TensorFlow's whole name of an attribute: ``tf.nn.relu``; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return ""
    return ".".join([names[node.id], *reversed(parts)])


def _anywhere(node: ast.AST, names: dict[str, str]) -> TensorflowUse | None:
    """Return a loop, a compiled function or a strategy of TensorFlow."""
    if not isinstance(node, ast.Attribute | ast.Name):
        return None
    path = _path(node, names)
    kinds: dict[str, Kind] = {"tf.GradientTape": "loop", "tf.function": "function"}
    if kind := kinds.get(path):
        return TensorflowUse(line=node.lineno, name=path, kind=kind)
    if path.startswith("tf.distribute.") and path.endswith("Strategy"):
        return TensorflowUse(line=node.lineno, name=path, kind="strategy")
    return None


def _in_class(node: ast.ClassDef, names: dict[str, str]) -> Iterator[TensorflowUse]:
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name in _CALLS:
            for statement in method.body:
                yield from _operations(statement, names)


def _operations(tree: ast.AST, names: dict[str, str]) -> Iterator[TensorflowUse]:
    """Find calls of TensorFlow's operations."""
    for node in ast.walk(tree):
        path = _path(node.func, names) if isinstance(node, ast.Call) else ""
        parts = path.split(".")
        if len(parts) > 1 and parts[1] not in _HARMLESS and path != "tf.GradientTape":
            assert isinstance(node, ast.Call)
            yield TensorflowUse(line=node.lineno, name=path, kind="operation")
