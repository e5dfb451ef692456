"""Windows of calls: how long one kernel of a chain takes, the call itself taken off."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

WINDOW_S = {"cpu": 3e-3, "gpu": 1.2e-2}
"""The length of a window. On CPUs it is shorter than the time for which a system lets another
process have a processor: some windows of a busy machine are then undisturbed. On a GPU it is long
beside the start of the first call and the wait for the last one, which nothing hides: 0.1 to 0.2 ms
on an H200."""
CHAIN_S = {"cpu": 1e-3, "gpu": 2e-3}
"""Kernels that follow each other in one call take about so long. On CPUs the call itself is short
by it; on a GPU it has to hide the next call: up to 0.3 ms where XLA has many results."""
MOST_KERNELS = {"cpu graph": 256, "cpu xla": 12, "gpu graph": 256, "gpu xla": 128,
                "gpu xla convolution": 24}  # fmt: skip
"""The most kernels of a call, by card and execution. XLA takes the longer to compile a chain, the
longer it is, but on a GPU a chain of the smallest kernels has to take longer than the call. Of
convolutions cuDNN builds every one by itself: a chain of 56 depthwise ones took over 46 s on an
H200."""
WARM_CALLS = 2
MOST_CALLS = 2000


@dataclass(slots=True, kw_only=True)
class Timed:
    """A chain that is timed again and again."""

    name: str
    call: Callable[[], Any]
    wait: Callable[[Any], None]
    count: int
    """Kernels of one call."""
    window_s: float
    """How long a window is to take."""
    tf32: bool = False
    """Whether float32 products may run in TF32 when it is called."""
    calls: int = 1
    """Calls of a window, so that it takes ``window_s``."""

    def warm(self) -> None:
        """Run it for the first time; what that takes does not count."""
        for _ in range(WARM_CALLS):
            self.wait(self.call())
        took_s, _ = self._timed(1)
        self.calls = max(1, min(MOST_CALLS, round(self.window_s / max(took_s, 1e-7))))

    def window(self) -> tuple[float, float]:
        """Time one more window: seconds of a call, and of all processors for it.

        One call comes first and does not count: other chains left their data in the caches.
        """
        self.wait(self.call())
        return self._timed(self.calls)

    def _timed(self, calls: int) -> tuple[float, float]:
        began_s, used_s, last = time.perf_counter(), time.process_time(), None
        for _ in range(calls):
            last = self.call()
        self.wait(last)
        taken_s, used_s = time.perf_counter() - began_s, time.process_time() - used_s
        return taken_s / calls, used_s / calls


def chain_length(expected_s: float, held_bytes: float, room_bytes: float, how: str) -> int:
    """Count a chain's kernels: enough to tell them from the call, as many as memory holds.

    Args:
        expected_s: About what one takes.
        held_bytes: Of one with its operands.
        room_bytes: What all results of a chain may take.
        how: Card and execution, and the kind where it is one of those above: ``gpu xla``.
    """
    wanted = int(CHAIN_S[how.partition(" ")[0]] / max(expected_s, 1e-7))
    most = MOST_KERNELS.get(how) or MOST_KERNELS[how.rpartition(" ")[0]]
    return max(1, min(most, wanted, int(room_bytes / max(held_bytes, 1.0))))
