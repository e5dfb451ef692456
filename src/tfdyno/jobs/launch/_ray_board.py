"""What the workers of Ray and their driver tell each other, in an actor beside the driver.

Ray Train brings metrics from its workers, and nothing back to them. Lines for the terminal, the
addresses of a group and the wish to stop go through here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

Kind = Literal["progress", "output", "started", "restart"]
SILENT_S = 5.0
"""A worker that runs is heard of some times a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One thing that a worker has said."""

    rank: int
    kind: Kind
    text: str


class Board:
    """Everything is kept in memory: a driver that is gone needs none of it."""

    def __init__(self) -> None:
        """Begin with nobody having said anything."""
        self._said: list[Said] = []
        self._addresses: dict[str, dict[int, str]] = {}
        self._heard_s = float("-inf")
        self._stops = False

    def meet(self, group: str, rank: int, address: str, size: int) -> tuple[str, ...]:
        """Return where all workers of a group listen, by rank; empty until all are there.

        Args:
            group: Name of this start of all workers.
            rank: Of the worker that asks.
            address: Its own, ``host:port``.
            size: Workers of the group.
        """
        self._heard_s = time.monotonic()
        addresses = self._addresses.setdefault(group, {})
        addresses[rank] = address
        return tuple(addresses[one] for one in range(size)) if len(addresses) == size else ()

    def say(self, said: list[Said]) -> bool:
        """Take what a worker says; whether it is asked to end."""
        self._heard_s = time.monotonic()
        self._said += said
        return self._stops

    def take(self, stops: bool) -> tuple[list[Said], bool]:
        """Return what was said since the last time, and whether a worker is there.

        Args:
            stops: Whether the workers are asked to end, from now on.
        """
        self._stops = self._stops or stops
        said, self._said = self._said, []
        return said, time.monotonic() - self._heard_s < SILENT_S

    def stops(self) -> bool:
        """Return whether the workers are asked to end."""
        return self._stops
