"""What is to be changed in a script, gathered place by place and then made one text."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tfdyno.core.doctor.migration import Change, Hand
from tfdyno.rules.rewrite.source_text import Patch, patched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tfdyno.rules.rewrite.script import Script


class Draft:
    """Changes of one script.

    Attributes:
        patches: Changes of the text; what lies in a dropped statement is not made.
        dropped: Statements that go.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.patches: list[Patch] = []
        self.dropped: set[ast.stmt] = set()
        self._cut: list[tuple[int, int]] = []
        self._changes: list[tuple[int, Change]] = []
        self._hands: list[tuple[int, Hand]] = []

    def change(self, node: ast.expr | ast.stmt, name: str, why: str) -> None:
        """Tell of a change."""
        at, _ = self.script.span(node)
        self._changes.append((at, Change(line=node.lineno, name=name, why=why)))

    def hand(self, node: ast.expr | ast.stmt, why: str, remedy: str) -> None:
        """Leave a place to a person, unless it goes with what stands around it."""
        at, _ = self.script.span(node)
        text = self.script.line(node.lineno)
        self._hands.append((at, Hand(line=node.lineno, text=text, why=why, remedy=remedy)))

    def replace(self, node: ast.expr, text: str) -> None:
        """Write something else for an expression."""
        start, end = self.script.span(node)
        self.patches.append(Patch(start=start, end=end, text=text))

    def cut(self, start: int, end: int) -> None:
        """Take characters out, and all that was to be done in them."""
        self.patches.append(Patch(start=start, end=end, text=""))
        self._cut.append((start, end))

    def unwrap(self, outer: ast.expr, inner: ast.expr) -> None:
        """Leave of an expression one in it; what is to be done in that one is."""
        (start, end), (first, last) = self.script.span(outer), self.script.span(inner)
        self.cut(start, first)
        self.cut(last, end)

    def leave(self, outer: ast.expr, inner: ast.expr) -> None:
        """Leave of an expression one in it, or nothing of ``x = f(x)``."""
        match self.script.statement(outer), inner:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) as statement, ast.Name(
                id=own
            ) if value is outer and name == own:
                self.dropped.add(statement)
            case _:
                self.unwrap(outer, inner)

    def is_gone(self, node: ast.AST) -> bool:
        """Return whether a statement around it is dropped, or its text cut."""
        if node in self.dropped or any(one in self.dropped for one in self.script.around(node)):
            return True
        if not isinstance(node, ast.expr):
            return False
        start, end = self.script.span(node)
        return any(first <= start and end <= last for first, last in self._cut)

    def settle(self, is_idle: Callable[[ast.Assign], bool]) -> None:
        """Drop what has nothing left to do: assignments nobody reads, blocks without a line.

        Args:
            is_idle: Whether an assignment is of a kind that may go.
        """
        before = -1
        while before != len(self.dropped):
            before = len(self.dropped)
            for node in ast.walk(self.script.tree):
                if isinstance(node, ast.Assign):
                    is_over = is_idle(node) and self._is_unread(node)
                else:
                    is_over = isinstance(node, ast.If | ast.For) and self._is_empty(node)
                if is_over and isinstance(node, ast.stmt):
                    self.dropped.add(node)

    def _is_empty(self, node: ast.If | ast.For) -> bool:
        return all(one in self.dropped for one in [*node.body, *node.orelse])

    def _is_unread(self, node: ast.Assign) -> bool:
        (target, *more) = node.targets
        if more or not isinstance(target, ast.Name):
            return False
        loads = self.script.loads(target.id)
        return bool(loads) and all(self.is_gone(one) for one in loads)

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes in the order of their places."""
        return tuple(one for _, one in sorted(self._changes, key=lambda pair: pair[0]))

    @property
    def hands(self) -> tuple[Hand, ...]:
        """What needs a person, by place, without what went with what stood around it."""
        gone = [self.script.span(one) for one in self.dropped] + self._cut
        kept = [(at, one) for at, one in self._hands
                if not any(start <= at < end for start, end in gone)]  # fmt: skip
        return tuple(dict.fromkeys(one for _, one in sorted(kept, key=lambda pair: pair[0])))

    def result(self, extra: Iterable[Patch] = ()) -> str:
        """Return the text with all changes; ``extra`` are patches outside of them."""
        drops = [patch for one in self._outermost() for patch in self._dropping(one)]
        gone = drops + [Patch(start=start, end=end, text="") for start, end in self._cut]
        kept = [one for one in {*self.patches} if not any(_inside(one, other) for other in gone)]
        cuts = [one for one in {*gone} if not any(_inside(one, other) for other in gone)]
        return patched(self.script.source, {*kept, *cuts, *extra})

    def _outermost(self) -> list[ast.stmt]:
        return [one for one in self.dropped
                if not any(outer in self.dropped for outer in self.script.around(one))]  # fmt: skip

    def _dropping(self, statement: ast.stmt) -> list[Patch]:
        """Cut its lines out, or write ``pass`` where nothing else is left in its block."""
        script, block = self.script, self.script.block(statement)
        is_last_left = all(one in self.dropped for one in block) and statement is block[-1]
        if is_last_left and not isinstance(script.parents[statement], ast.Module):
            start, end = script.span(statement)
            return [Patch(start=start, end=end, text="pass")]
        if script.is_alone(statement):
            return [script.lines_cut(statement.lineno, statement.end_lineno or statement.lineno)]
        start, end = script.span(statement)
        rest = script.source[end:]
        end += len(rest) - len(rest.lstrip(" \t;"))
        return [Patch(start=start, end=end, text="")]


def _inside(one: Patch, other: Patch) -> bool:
    is_same = (one.start, one.end) == (other.start, other.end)
    if is_same or other.start == other.end:
        return False
    if one.start == one.end:  # put in, not over: at an edge it is outside
        return other.start < one.start < other.end
    return other.start <= one.start and one.end <= other.end
