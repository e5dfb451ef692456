"""What became of a text, as a patch has it."""

from __future__ import annotations

import difflib
import io


def unified(path: str, before: str, after: str) -> str:
    """Return the unified diff of two texts of one file; empty where they are the same."""
    lines = difflib.unified_diff(
        list(io.StringIO(before, newline="\n")), list(io.StringIO(after, newline="\n")),
        f"a/{path}", f"b/{path}",
    )  # fmt: skip
    return "".join(one if one.endswith("\n") else f"{one}\n\\ No newline at end of file\n"
                   for one in lines)  # fmt: skip
