"""The line of the user's own code that something happens at."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.process.failure import is_own

if TYPE_CHECKING:
    from types import CodeType, FrameType

own_file = functools.lru_cache(maxsize=4096)(is_own)
"""``is_own``, asked for the same few files again and again."""


def own_frame(frame: FrameType | None = None) -> FrameType | None:
    """Find the innermost frame of the user's code, from ``frame`` outwards; None: none."""
    frame = frame or sys._getframe(1)
    while frame and not own_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def own_place() -> str:
    """Return ``train.py:41`` of the user's line that is being run; empty: none."""
    frame = own_frame(sys._getframe(1))
    return place_of(frame.f_code.co_filename, frame.f_lineno) if frame else ""


def place_of(filename: str, line: int) -> str:
    """Write ``train.py:41``."""
    return f"{Path(filename).name}:{line}"


def code_place(code: CodeType | None) -> str:
    """Return where a function of the user's is defined; empty for others."""
    if code is None or not own_file(code.co_filename):
        return ""
    return place_of(code.co_filename, code.co_firstlineno)
