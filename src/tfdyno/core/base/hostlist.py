"""Slurm's short form of many host names: ``gpu[01-03,7],login``."""

from __future__ import annotations

import re

from tfdyno.core.base.errors import UsageError

MOST_HOSTS = 100_000
MOST_BRACKETS = 16
"""The most brackets in one name."""
_PART = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


def expand_hosts(text: str) -> tuple[str, ...]:
    """Return all host names of a list in its order.

    Args:
        text: As Slurm writes it; several brackets in a name multiply, the last one fastest.

    Raises:
        UsageError: It cannot be read.
    """
    return tuple(host for piece in _pieces(text) for host in _expanded(piece, text))


def _pieces(text: str) -> list[str]:
    """Return the parts between commas outside of brackets."""
    pieces, depth, last = [], 0, 0
    for place, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if depth not in (0, 1):
            raise _unreadable(text)
        if character == "," and depth == 0:
            pieces.append(text[last:place])
            last = place + 1
    pieces.append(text[last:])
    if depth or not all(piece.strip() for piece in pieces):
        raise _unreadable(text)
    return [piece.strip() for piece in pieces]


def _expanded(piece: str, text: str) -> list[str]:
    begin, end = piece.find("["), piece.find("]")
    if begin < 0:
        return [piece]
    if piece.count("[") > MOST_BRACKETS:
        raise _unreadable(text)
    tails = _expanded(piece[end + 1 :], text) if piece[end + 1 :] else [""]
    numbers = [number for part in piece[begin + 1 : end].split(",") for number in _run(part, text)]
    if len(numbers) * len(tails) > MOST_HOSTS:
        raise _unreadable(text)
    return [f"{piece[:begin]}{number}{tail}" for number in numbers for tail in tails]


def _run(part: str, text: str) -> list[str]:
    """Read ``08-10`` as 08, 09, 10."""
    found = _PART.fullmatch(part.strip())
    if not found:
        raise _unreadable(text)
    first, last = found[1], found[2] or found[1]
    if not 0 <= int(last) - int(first) < MOST_HOSTS:
        raise _unreadable(text)
    return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]


def _unreadable(text: str) -> UsageError:
    shown = text if len(text) <= 80 else f"{text[:79]}…"
    return UsageError(f"the list of hosts '{shown}' cannot be read", remedy="write n[1-4],n7")
