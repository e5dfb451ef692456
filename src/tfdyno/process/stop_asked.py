"""Somebody asks the process to end: leave the user's code at once, or training after its step."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopAsked(BaseException):
    """Leaves the user's code; no ``except Exception`` of the user stops it.

    Attributes:
        signal_name: ``SIGTERM`` or ``SIGINT``.
    """

    def __init__(self, signal_name: str) -> None:
        self.signal_name = signal_name
        super().__init__(signal_name)


def leave(signal_name: str) -> NoReturn:
    """Leave the user's code; what runs its steps has its own way to stop."""
    raise StopAsked(signal_name)


@contextlib.contextmanager
def asked_to_stop(ask: Callable[[str], None] = leave) -> Iterator[None]:
    """Call ``ask`` with the signal's name instead of ending, until the block ends.

    In another thread than the main one signals cannot be taken: they stay as they are.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def asked(number: int, _frame: object) -> None:
        if _delayed:
            _delayed[-1].append(number)
            return
        ask("Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name)

    before = {number: signal.signal(number, asked) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_delayed: list[list[int]] = []
"""The signals that came within each block of ``stop_delayed`` that is under way."""


@contextlib.contextmanager
def stop_delayed() -> Iterator[None]:
    """Let the block come to its end before a stop is heeded that is asked for meanwhile.

    A mask of the signals would not do: they reach a process by whichever thread does not block
    them, and Python's handlers run in the main thread all the same.
    """
    came: list[int] = []
    _delayed.append(came)
    try:
        yield
    finally:
        _delayed.pop()
        if came:
            signal.raise_signal(came[-1])
