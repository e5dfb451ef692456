"""What a process and its devices hold: pages by the kernel's count, live bytes by the allocators'.

Pages stay with an allocator long after they were freed, and come back when it needs them. What is
in use by its own account has no such plateaus: it tells a growth of some bytes per step.

Tensors of 256 KiB and more in the host's memory come from an allocator of TensorFlow's own (with
oneDNN, the default), which takes ever larger pools from the C library. So they are told by its
account, and the pools are taken out of the C library's.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfdyno.runtime.base.tensorflow_internals import memory_limits_bytes

PYTHON_BLOCK_BYTES = 95
"""The mean bytes of a small Python object: 146.8 MB in pools for 1.54 million blocks of a process
that has imported TensorFlow 2.21 and Keras (sys._debugmallocstats, CPython 3.11)."""
HOST = "CPU:0"
STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")
RESET_PEAK = "5"
"""Sets the peak of resident memory to what is resident now (Linux, man 5 proc)."""
_LEAST_RATIO = 0.02
"""The share of the resident memory below which a C library is not the one that is asked for it."""
_LEAST_POOL_BYTES = 1 << 20
"""What TensorFlow's allocator takes at once (BFCAllocator::Extend: 1 MiB, then twice as much each
time)."""


class _MallocInfo(ctypes.Structure):
    """``struct mallinfo2`` (GNU C library 2.33 and newer, malloc.h)."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks",
                     "uordblks", "fordblks", "keepcost")
    )  # fmt: skip


@dataclass(slots=True)
class MemoryCounters:
    """Between ``open`` and ``close``; -1 stands for what cannot be read."""

    _file: int = -1
    _page_bytes: int = 4096
    _malloc_info: Callable[[], _MallocInfo] | None = None
    devices: tuple[str, ...] = field(default=())
    """``GPU:0``, ``CPU:0``: those of which TensorFlow keeps an account."""
    _pools_bytes: int = 0
    _peak_bytes: int = 0
    _last_bytes: int = 0

    def open(self) -> None:
        """Find out what can be read."""
        with contextlib.suppress(OSError):
            self._file = os.open("/proc/self/statm", os.O_RDONLY)
            self._page_bytes = os.sysconf("SC_PAGESIZE")
        names = (one.name.removeprefix("/device:") for one in tf.config.list_logical_devices())
        self.devices = tuple(name for name in names if _has_account(name))
        with contextlib.suppress(OSError, AttributeError):
            ask: Any = ctypes.CDLL(None).mallinfo2
            ask.restype = _MallocInfo
            self._malloc_info = ask
            if self.allocated_bytes() < _LEAST_RATIO * self.resident_bytes():
                self._malloc_info = None  # another allocator was loaded in front of it

    def close(self) -> None:
        """Stop reading."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def resident_bytes(self) -> int:
        """Return the bytes of pages that the process has in memory."""
        if self._file < 0:
            return -1
        return int(os.pread(self._file, 64, 0).split()[1]) * self._page_bytes

    def allocated_bytes(self, own_blocks: int = 0) -> int:
        """Sum what is in use by the accounts of the C library, of TensorFlow and of Python.

        It takes 0.2-1 ms: the lists of what is free are walked.

        Args:
            own_blocks: Small objects that the one who asks keeps himself.
        """
        if self._malloc_info is None:
            return -1
        info = self._malloc_info()
        found, tensors = int(info.uordblks + info.hblkhd), 0
        if HOST in self.devices:
            told = tf.config.experimental.get_memory_info(HOST)
            tensors, peak = int(told["current"]), int(told["peak"])
            if peak > self._peak_bytes and found - self._last_bytes >= _LEAST_POOL_BYTES:
                self._pools_bytes += found - self._last_bytes
            self._peak_bytes, self._last_bytes = max(peak, self._peak_bytes), found
        blocks = sys.getallocatedblocks() - own_blocks
        return found - self._pools_bytes + tensors + blocks * PYTHON_BLOCK_BYTES

    def device_bytes(self, device: str) -> int:
        """Return bytes in use on a device by the account of TensorFlow's allocator."""
        return int(tf.config.experimental.get_memory_info(device)["current"])


def _has_account(device: str) -> bool:
    """Return whether TensorFlow tells what it holds there."""
    try:
        tf.config.experimental.get_memory_info(device)
    except (ValueError, tf.errors.OpError):
        return False
    return True


def device_limit_bytes(device: str) -> int:
    """Return what TensorFlow may take of a device; 0: not known."""
    with contextlib.suppress(ValueError, RuntimeError):
        return memory_limits_bytes().get(device, 0)
    return 0


class PeakMemory:
    """Reads the peak since ``reset``."""

    @property
    def is_of_a_card(self) -> bool:
        """Whether TensorFlow's allocator of a GPU is read, and not the whole process."""
        return bool(tf.config.list_logical_devices("GPU"))

    def reset(self) -> None:
        """Forget what was held so far."""
        if self.is_of_a_card:
            tf.config.experimental.reset_memory_stats("GPU:0")
        with contextlib.suppress(OSError):
            CLEAR.write_text(RESET_PEAK)

    def read(self) -> tuple[int, str]:
        """Return bytes, and what they are of: ``allocator`` (the first GPU) or ``process``."""
        if self.is_of_a_card:
            return int(tf.config.experimental.get_memory_info("GPU:0")["peak"]), "allocator"
        return _resident_peak_bytes(), "process"


def _resident_peak_bytes() -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = STATUS.read_text().splitlines()
        peak = next(line for line in lines if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
