"""The text of a user's Python file, changed at places of its tree and nowhere else."""

from __future__ import annotations

import ast
import io
import tokenize
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

TENSORFLOW = "tensorflow"
ALIAS = "tf"
"""The name of TensorFlow in the texts of the tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Characters of the source from one position to another, and what takes their place."""

    start: int
    end: int
    text: str


class SourceText:
    """A source in which places of the tree, whose columns count bytes, are found."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._starts = [0]
        for line in source.split("\n"):  # as Python counts lines: a form feed ends none
            self._starts.append(self._starts[-1] + len(line) + 1)

    def token_before(self, position: int) -> tuple[int, str]:
        """Find where the last token before a position ends, comments left out, and the token."""
        ends = [
            (self._starts[token.end[0] - 1] + token.end[1], token.string)
            for token in tokenize.generate_tokens(io.StringIO(self.source).readline)
            if token.string.strip() and token.type != tokenize.COMMENT
        ]
        return max(one for one in ends if one[0] <= position)

    def line(self, number: int) -> str:
        """Return one line with its end."""
        return self.source[self._starts[number - 1] : self._starts[number]]

    def at(self, line: int, column_bytes: int) -> int:
        """Return the position of a place of the tree."""
        before = self.line(line).encode()[:column_bytes].decode()
        return self._starts[line - 1] + len(before)

    def start(self, node: ast.expr | ast.stmt) -> int:
        """Return the place of its first character."""
        return self.at(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Return the place after its last character."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.at(node.end_lineno, node.end_col_offset)


def patched(source: str, patches: Iterable[Patch]) -> str:
    """Return the source with all of them; two at one place stand in their order."""
    ordered = sorted(patches, key=lambda one: (one.start, one.end))
    for patch in ordered[::-1]:  # from the end on, so that the other places stay as they are
        source = source[: patch.start] + patch.text + source[patch.end :]
    return source


def name_of(tree: ast.Module, module: str, default: str = "") -> str:
    """Return what the file calls a module that it imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.name == module:
                    return name.asname or module
    return default


def last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name, of a call that of what is called."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def argument_patches(call: ast.Call, words: str, position: int, text: SourceText) -> list[Patch]:
    """Return the argument written into the brackets, or over the constant that is given now."""
    name, _, value = words.partition("=")
    given = next((one for one in call.keywords if one.arg == name), None)
    is_open = any(one.arg is None for one in call.keywords) or any(
        isinstance(one, ast.Starred) for one in call.args
    )
    if given is not None:
        if not isinstance(given.value, ast.Constant):
            return []
        start, end = text.start(given.value), text.end(given.value)
        return [Patch(start=start, end=end, text=value)]
    if is_open or len(call.args) > position:
        return []
    at, last = text.token_before(text.end(call) - 1)
    lead = {"(": "", ",": " "}.get(last, ", ")
    return [Patch(start=at, end=at, text=f"{lead}{words}")]
