"""CPU time against a reference that takes turns with it: other work slows both."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

TURNS = 5


def loops_of(work: Callable[[], object]) -> float:
    """How many millions of turns of an empty loop take as much CPU time as ``work``: about 100 a
    second on a usual core of 2024, the best of some turns each.
    """
    return ratio(work, _loop)


def ratio(work: Callable[[], object], reference: Callable[[], object]) -> float:
    """CPU time of ``work`` over that of the reference, each the least of some turns."""
    gc.collect()  # what other tests left is not collected in the middle of it
    gc.disable()
    try:
        taken = [(_cpu_s(work), _cpu_s(reference)) for _ in range(TURNS)]
    finally:
        gc.enable()
    return min(own_s for own_s, _ in taken) / min(reference_s for _, reference_s in taken)


def _cpu_s(work: Callable[[], object]) -> float:
    began_s = time.process_time()
    work()
    return time.process_time() - began_s


def _loop() -> None:
    for _ in range(1_000_000):
        pass
