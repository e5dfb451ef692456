"""Ctrl-C and SIGTERM, which wait while something is done that must not stop half-way."""

from __future__ import annotations

import contextlib
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class _Waiting:
    """Of this process."""

    depth: int = 0
    asked: bool = False


_WAITING = _Waiting()


def listen() -> None:
    """Let both signals raise KeyboardInterrupt: a machine that is given back sends SIGTERM."""
    for which in (signal.SIGINT, signal.SIGTERM):
        signal.signal(which, _interrupt)


def _interrupt(*_: object) -> None:
    if _WAITING.depth:
        _WAITING.asked = True
    else:
        raise KeyboardInterrupt


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Do what is inside to its end; an interrupt that comes meanwhile is raised after it."""
    _WAITING.depth += 1
    try:
        yield
    finally:
        _WAITING.depth -= 1
        if _WAITING.asked and not _WAITING.depth:
            _WAITING.asked = False
            raise KeyboardInterrupt
