"""What only one process did: what all have to do together, and what still one does."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tfdyno.rules.horovod.names import joint_names
from tfdyno.rules.rewrite.source_text import last_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tfdyno.rules.rewrite.draft import Draft

_JOINT = "all processes do it together; the trainer lets only the first one write"
_ALONE = "a process is alone on its node"
_SHOWN = frozenset({"print", "format", "info", "debug", "warning", "join", "write"})
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def is_first(test: ast.expr, ranks: list[ast.expr]) -> bool:
    """Return whether it asks for the first process: ``hvd.rank() == 0``, ``not hvd.rank()``."""
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=0)]):
            return left in ranks
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand in ranks
        case _:
            return False


def opened(draft: Draft, ranks: list[ast.expr], local: list[ast.expr]) -> Iterator[ast.expr]:
    """Let all processes do what is done together, or once on each node.

    Args:
        draft: Takes the changes.
        ranks: Uses of ``hvd.rank()``, and of its kin.
        local: Of them those of ``hvd.local_rank()``.

    Yields:
        The ranks of those conditions.
    """
    for node in ast.walk(draft.script.tree):
        if isinstance(node, ast.IfExp) and not draft.is_gone(node):
            yield from _chosen(draft, node, ranks)
        if not isinstance(node, ast.If) or draft.is_gone(node):
            continue
        own = [one for one in ast.walk(node.test) if one in ranks]
        names = sorted(_names(node.body, draft) & joint_names()) if own else []
        is_alone = any(one in local for one in own) and is_first(node.test, ranks)
        if not names and not (is_alone and not node.orelse):
            continue
        if is_first(node.test, ranks) and not node.orelse:
            done = (
                f"if hvd.rank() == 0: {', '.join(names)}" if names else "if hvd.local_rank() == 0"
            )
            draft.change(node, done, _JOINT if names else _ALONE)
            _open(draft, node)
        else:
            _apart(draft, node, names)
        yield from (one for one in own if isinstance(one, ast.expr))


def _chosen(draft: Draft, node: ast.IfExp, ranks: list[ast.expr]) -> Iterator[ast.expr]:
    """Read ``[ModelCheckpoint(...)] if hvd.rank() == 0 else []``."""
    own = [one for one in ast.walk(node.test) if one in ranks]
    names = sorted(_names([node.body, node.orelse], draft) & joint_names()) if own else []
    if names:
        _apart(draft, node, names)
        yield from (one for one in own if isinstance(one, ast.expr))


def _apart(draft: Draft, node: ast.If | ast.IfExp, names: list[str]) -> None:
    why = f"{', '.join(names)} is done by some processes, and all have to do it together"
    draft.hand(node, why, "move it out of the condition")


def is_harmless(draft: Draft, rank: ast.expr) -> bool:
    """Return whether a rank is only compared with a number, or shown."""
    script = draft.script
    for outer in script.around(rank):
        match outer:
            case ast.If(body=body) if any(isinstance(one, _LEAVES) for one in body):
                return False  # a process that leaves lets the others wait
            case ast.Compare(left=left, comparators=[ast.Constant()]) if left is rank:
                continue
            case ast.FormattedValue() | ast.JoinedStr():
                return True
            case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str())):
                return True
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _SHOWN:
                return True
            case ast.stmt():
                break
    parent = script.parents[rank]
    return isinstance(parent, ast.Compare | ast.FormattedValue) or (
        isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    )


def _open(draft: Draft, node: ast.If) -> None:
    """Take the condition away and move its lines to the left."""
    script, first = draft.script, node.body[0]
    start, _ = script.span(node)
    if first.lineno == node.test.end_lineno:
        draft.cut(start, script.span(first)[0])
        return
    above, last = script.comment_above(node.lineno), node.test.end_lineno or node.lineno
    is_closed = ":" in script.source[script.span(node.test)[1] : script.text.at(last + 1, 0)]
    following = last + 1 if is_closed else first.lineno
    draft.cut(script.text.at(above, 0), script.text.at(following, 0))
    draft.patches += script.dedented(node.body, node.col_offset, first=following)


def _names(body: Iterable[ast.AST], draft: Draft) -> set[str]:
    """Name the last part of what a block calls, and functions of the file that it calls."""
    functions = {
        node.name: node for node in ast.walk(draft.script.tree) if isinstance(node, ast.FunctionDef)
    }
    found: set[str] = set()
    waiting = [one for one in body if one not in draft.dropped]
    while waiting:
        for node in ast.walk(waiting.pop()):
            if not isinstance(node, ast.Call):
                continue
            name = last_name(node)
            if name in functions and name not in found and isinstance(node.func, ast.Name):
                waiting += functions[name].body
            found.add(name)
    return found
