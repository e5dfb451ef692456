"""Which words a text must hold before an expression can match it.

To find that one of a few words is missing takes a hundredth of the time of a search for ``a|b.*c``
in a line, and nearly all lines that hold a rule's needle do not match its expression.
"""

from __future__ import annotations

from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.base.untyped import Value

_FEWEST_LETTERS = 2
_MOST_WORDS = 40
"""A longer list costs as much as the expression."""

Words = frozenset[str]


def needed_words(expression: str, needle: str) -> Words:
    """Lower-case texts of which any match holds at least one; empty where there is no such list.

    Args:
        expression: Regular expression that will be searched ignoring case.
        needle: Text that is known to be there: its parts say nothing.
    """
    return _of_sequence(parser.parse(expression), needle) or frozenset()


def _of_sequence(items: Iterable[tuple[Any, Any]], needle: str) -> Words | None:
    """The most telling of the lists of a sequence's parts."""
    lists: list[Words | None] = []
    run = ""
    for code, value in items:
        if code is codes.LITERAL and value < 128:
            run += chr(value).lower()
            continue
        lists += [frozenset({run}), _of_item(code, value, needle)]
        run = ""
    lists.append(frozenset({run}))
    telling = [one for one in lists if one and _is_telling(one, needle)]
    return max(telling, key=_worth, default=None)


def _of_item(code: Value, value: Value, needle: str) -> Words | None:
    if code is codes.SUBPATTERN:
        return _of_sequence(value[-1], needle)
    if code in {codes.MAX_REPEAT, codes.MIN_REPEAT}:
        return _of_sequence(value[2], needle) if value[0] else None
    if code is codes.BRANCH:
        branches = [_of_sequence(one, needle) for one in value[1]]
        if all(branches):
            return frozenset().union(*(one for one in branches if one))
    return None


def _is_telling(words: Words, needle: str) -> bool:
    return len(words) <= _MOST_WORDS and not any(
        len(word) < _FEWEST_LETTERS or word.strip() in needle for word in words
    )


def _worth(words: Words) -> tuple[int, int]:
    return min(map(len, words)), -len(words)
