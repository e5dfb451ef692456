"""What a step's output depends on, as one key; and in words what has changed of it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SHORT = 16
"""Signs of a key that name a folder."""
_TOLD = 3
_SHOWN_CHARACTERS = 30


def key_of(rests_on: Mapping[str, str]) -> str:
    """Return the sha256 of all names and values, whatever their order, as 64 hexadecimal digits."""
    text = json.dumps(sorted(rests_on.items()), ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def change_words(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Say why a step runs again: ``train.py changed; option epochs 5 → 6``; empty: nothing did."""
    names = [*now, *(name for name in before if name not in now)]
    found = [_words(n, before.get(n), now.get(n)) for n in names if before.get(n) != now.get(n)]
    more = len(found) - _TOLD
    return "; ".join([*found[:_TOLD], *([f"and {more} more"] if more > 0 else [])])


def _words(name: str, before: str | None, now: str | None) -> str:
    kind, _, what = name.partition(" ")
    if kind == "file":
        return f"{what} {'is new' if before is None else 'is gone' if now is None else 'changed'}"
    if kind == "step":
        return (
            f"{what} ran anew"
            if before and now
            else f"{what} is {'no longer' if before else 'now'} needed"
        )
    if before is None:
        return f"{name} {_short(now)} is new"
    if now is None:
        return f"{name} {_short(before)} is gone"
    return f"{name} {_short(before)} → {_short(now)}"


def _short(value: str | None) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
