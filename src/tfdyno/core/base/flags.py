"""Flags in one environment variable, as XLA and TensorFlow read ``XLA_FLAGS``, ``TF_XLA_FLAGS``.

Both read the variable as the name of a file where its first character is not a dash, and end the
process at a flag that they do not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def is_file_name(text: str) -> bool:
    """Return whether the variable names a file of flags, to which nothing can be added here."""
    return bool(text.strip()) and not text.lstrip().startswith("-")


def flag_names(text: str) -> frozenset[str]:
    """Return names of the flags that are set: ``--xla_dump_to``."""
    return frozenset(one.partition("=")[0] for one in text.split() if one.startswith("-"))


def with_flags(existing: str, added: Mapping[str, str]) -> str:
    """Add flags to the variable; what it sets already stays, and a name of a file does, too.

    Args:
        existing: What the variable holds; may be empty.
        added: Values by name, ``--xla_dump_to``; a value with white space is quoted.
    """
    if is_file_name(existing):
        return existing
    have = flag_names(existing)
    new = [f"{name}={_quoted(value)}" for name, value in added.items() if name not in have]
    return " ".join(filter(None, [existing.strip(), *new]))


def _quoted(value: str) -> str:
    if not any(one.isspace() or one in "'\"\\" for one in value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
