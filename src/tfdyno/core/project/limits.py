"""What no command line and no file system takes, refused as a project's file is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

MOST_NAME = 100
"""Signs of a step's name, of which the names of its folders are made."""
MOST_BYTES = 100_000
"""The most bytes of one text: Linux takes 131,071 for a word of a command line."""
MOST_STEP_BYTES = 500_000
"""The most bytes of all texts of a step."""
MOST_DEPTH = 8
"""The most tables and lists in one another."""
MOST_WHOLE = 2**63
"""The largest whole number, as TOML has them."""
_REMEDY = "put them into a file, and name that"


def check_limits(raw: Mapping[str, object], file: Path, where: str) -> None:
    """Refuse texts, numbers and depths that nothing could be done with.

    Args:
        raw: A table of the file.
        file: For the sentence.
        where: What the table is called there.

    Raises:
        UsageError: The sentence names the table, not the value.
    """
    size_bytes = 0
    for value, depth in _values(raw):
        if depth > MOST_DEPTH:
            raise UsageError(f"{file}: {where} is nested too deep")
        if isinstance(value, int) and abs(value) >= MOST_WHOLE:
            raise UsageError(f"{file}: a number of {where} is too large", why="it has over 64 bits")
        if isinstance(value, str):
            size_bytes += _checked_bytes(value, file, where)
    if size_bytes > MOST_STEP_BYTES:
        raise UsageError(f"{file}: the texts of {where} are too long", remedy=_REMEDY,
                         why=f"they have {size_bytes:,} bytes")  # fmt: skip


def _checked_bytes(text: str, file: Path, where: str) -> int:
    size_bytes = len(text.encode(errors="replace"))
    if size_bytes > MOST_BYTES:
        raise UsageError(f"{file}: a text of {where} is too long", remedy=_REMEDY,
                         why=f"it has {size_bytes:,} bytes")  # fmt: skip
    if "\0" in text:
        before = text.partition("\0")[0][-20:]
        raise UsageError(f"{file}: a text of {where} has a NUL in it",
                         why=f"behind {before!r}" if before else "at its begin")  # fmt: skip
    return size_bytes


def _values(raw: Mapping[str, object]) -> Iterator[tuple[object, int]]:
    """Walk all keys and values, each with its depth, none below the depth that is refused."""
    left: list[tuple[object, int]] = [(raw, 0)]
    while left:
        value, depth = left.pop()
        yield value, depth
        inner = [*value, *value.values()] if isinstance(value, dict) else value
        if isinstance(inner, list):
            left += [(one, depth + 1) for one in inner]
