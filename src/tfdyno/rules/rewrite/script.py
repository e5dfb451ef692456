"""A script with what stands around each node of its tree, and places of it cut out of the text."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tfdyno.rules.migration.walk import sites
from tfdyno.rules.rewrite.source_text import Patch, SourceText

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.rules.migration.sites import Site

_BLOCKS = ("body", "orelse", "finalbody", "handlers")


class Script:
    """One Python file."""

    def __init__(
        self,
        source: str,
        about: str = "",
        tree: ast.Module | None = None,
        found: tuple[Site, ...] | None = None,
    ) -> None:
        """Read it; raises ``SyntaxError``, or ``RecursionError`` where it is nested too deeply.

        Args:
            source: Its text.
            about: A comment above lines that are cut goes with them where it speaks of this.
            tree: Of the text, where it is read already.
            found: Its sites, where its project was looked at for them.
        """
        self.source = source
        self._about = about
        self.tree = tree or ast.parse(source)
        self.text = SourceText(source)
        self.sites: tuple[Site, ...] = sites(self.tree) if found is None else found
        self.parents: dict[ast.AST, ast.AST] = {
            child: parent
            for parent in ast.walk(self.tree)
            for child in ast.iter_child_nodes(parent)
        }
        self._lines = source.split("\n")

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """List what lies around a node, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the statement that an expression stands in."""
        if isinstance(node, ast.stmt):
            return node
        return next(one for one in self.around(node) if isinstance(one, ast.stmt))

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the statements among which this one stands."""
        parent = self.parents[statement]
        blocks = (getattr(parent, name, None) or [] for name in _BLOCKS)
        return next(one for one in blocks if statement in one)

    def loads(self, name: str) -> list[ast.Name]:
        """Return every place of the file that reads a name."""
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.Name)
                and node.id == name and isinstance(node.ctx, ast.Load)]  # fmt: skip

    def assigned(self, name: str) -> list[ast.Assign]:
        """List assignments of the file to this one name."""
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.Assign)
                and [getattr(one, "id", "") for one in node.targets] == [name]]  # fmt: skip

    def words(self) -> frozenset[str]:
        """Return all names that the file knows."""
        found = {getattr(node, "id", "") for node in ast.walk(self.tree)}
        return frozenset(found | {getattr(node, "arg", "") for node in ast.walk(self.tree)})

    def line(self, number: int) -> str:
        """Return a line of the file, without its indentation."""
        return self._lines[number - 1].strip() if 0 < number <= len(self._lines) else ""

    def code(self, node: ast.expr) -> str:
        """Return the text of an expression."""
        return self.source[slice(*self.span(node))]

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Return positions of its first character and after its last one."""
        return self.text.start(node), self.text.end(node)

    def is_alone(self, node: ast.expr | ast.stmt, end: str = "") -> bool:
        """Return whether its lines hold nothing else but a comment, and ``end`` behind it."""
        assert node.end_lineno is not None
        start, stop = self.span(node)
        before = self.source[self.text.at(node.lineno, 0) : start]
        line_stop = self.text.at(node.end_lineno, 0) + len(self.text.line(node.end_lineno))
        after = self.source[stop:line_stop].strip()
        after = after.removeprefix(end).strip()
        return not before.strip() and (not after or after.startswith("#"))

    def lines_cut(self, first: int, last: int) -> Patch:
        """Cut whole lines out, with the comment on the same matter above them."""
        first = self.comment_above(first)
        before = self.line(first - 1)
        if not before or before.endswith((":", "[", "(")):  # no two blank lines where one was
            while last < len(self._lines) - 1 and not self.line(last + 1):
                last += 1
        start, last_line = self.text.at(first, 0), self.text.line(last)
        return Patch(start=start, end=self.text.at(last, 0) + len(last_line), text="")

    def comment_above(self, line: int) -> int:
        """Find the first line of a comment above on the same matter; else the line itself."""
        first = line
        while first > 1 and self.line(first - 1).startswith("#"):
            first -= 1
        said = "\n".join(self._lines[first - 1 : line - 1]).lower()
        return first if self._about and self._about in said else line

    def dedented(self, body: list[ast.stmt], column: int, first: int = 0) -> list[Patch]:
        """Return the lines of a block moved to the left; inner lines of long strings stay.

        Args:
            body: The block.
            column: Where it is to begin.
            first: Line to begin with, where comments stand above it; 0: that of the block.
        """
        delta = body[0].col_offset - column
        inner = {
            line
            for statement in body
            for node in ast.walk(statement)
            if isinstance(node, ast.Constant | ast.JoinedStr)
            for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
        }
        last = body[-1].end_lineno or body[-1].lineno
        patches = []
        for number in range(first or body[0].lineno, last + 1):
            text = self.text.line(number)
            if number not in inner and text.strip() and not text[:delta].strip():
                at = self.text.at(number, 0)
                patches.append(Patch(start=at, end=at + delta, text=""))
        return patches
