"""Attributes of classes, modules and objects of others, changed for a while."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.base.untyped import Value

_INHERITED = object()
_TO_THE_END = contextlib.ExitStack()


@contextlib.contextmanager
def replaced(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Give attributes of classes, modules and objects other values until the block ends.

    Args:
        changes: Owner, name and new value. What a class or an object inherits it inherits again
            afterwards.
    """
    before = [(owner, name, _own(owner, name)) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in reversed(before):
            if value is _INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def to_the_end(change: contextlib.AbstractContextManager[Any]) -> None:
    """Enter a change that this process keeps: a child does one job and ends."""
    _TO_THE_END.enter_context(change)


def ignored(note: str, notes: list[str], answer: Value = None) -> Callable[..., Any]:
    """Return a function that does nothing.

    Args:
        note: The sentence that ``notes`` gets at the first call.
        notes: For the user.
        answer: What each call returns.
    """

    def ignoring(*_args: Any, **_options: Any) -> Value:
        if note not in notes:
            notes.append(note)
        return answer

    return ignoring


def _own(owner: Value, name: str) -> Value:
    getattr(owner, name)  # what is not there cannot be replaced
    return vars(owner).get(name, _INHERITED)
