"""A step that can be called again and again, whatever framework runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class NoDeviceError(Exception):
    """The framework does not see the card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A prepared step and how it is timed."""

    call: Callable[[], Any]
    """Starts one step and nothing else; returns what it computes, which may not be there yet."""
    wait: Callable[[Any], float]
    """Waits for that; returns the first number of it."""
    memory: Callable[[], tuple[int, int]] | None
    """The allocator's bytes in use, and the most since ``reset_memory``; None where it has none."""
    reset_memory: Callable[[], None]
    facts: dict[str, object]
    """What the row says about the framework."""
