"""The most memory that a run held: TensorFlow's allocator on a GPU, else the whole process."""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path

import tensorflow as tf

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")
RESET_PEAK = "5"
"""Sets the peak of resident memory to what is resident now (Linux, man 5 proc)."""


class PeakMemory:
    """Reads the peak since ``reset``."""

    def reset(self) -> None:
        """Forget what was held so far."""
        if tf.config.list_logical_devices("GPU"):
            tf.config.experimental.reset_memory_stats("GPU:0")
        with contextlib.suppress(OSError):
            CLEAR.write_text(RESET_PEAK)

    def read(self) -> tuple[int, str]:
        """Return bytes, and what they are of: ``allocator`` (the first GPU) or ``process``."""
        if tf.config.list_logical_devices("GPU"):
            return int(tf.config.experimental.get_memory_info("GPU:0")["peak"]), "allocator"
        return _resident_peak_bytes(), "process"


def _resident_peak_bytes() -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = STATUS.read_text().splitlines()
        peak = next(line for line in lines if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
