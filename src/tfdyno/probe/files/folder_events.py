"""Which files of a folder other processes open, as the kernel counts (``inotify(7)``)."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_OPENED, _OVERFLOW = 0x20, 0x4000
"""``IN_OPEN`` and ``IN_Q_OVERFLOW``."""
_HEAD = struct.Struct("iIII")
"""``struct inotify_event`` without its name: watch, mask, cookie, length of the name."""
_READ_BYTES = 1 << 16


class FolderEvents:
    """Listens from its making on; ``opened`` tells what was opened so far.

    Where the kernel has no inotify, or too many listen, ``is_complete`` is False: nothing is known.
    """

    def __init__(self, folder: Path) -> None:
        """Begin to listen to the files of ``folder``, not to those of folders in it."""
        self._file, self._opened, self.is_complete = -1, set[str](), False
        if not sys.platform.startswith("linux"):
            return
        library = ctypes.CDLL(None, use_errno=True)
        self._file = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._file < 0:
            return
        watch = library.inotify_add_watch(self._file, os.fsencode(folder), _OPENED)
        self.is_complete = watch >= 0

    def opened(self) -> frozenset[str]:
        """Return names of the files that were opened since the beginning."""
        while self._file >= 0:
            try:
                data = os.read(self._file, _READ_BYTES)
            except BlockingIOError:
                break
            self._take(data)
        return frozenset(self._opened)

    def close(self) -> None:
        """Listen no more; a second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _take(self, data: bytes) -> None:
        place = 0
        while place < len(data):
            _, mask, _, length = _HEAD.unpack_from(data, place)
            place += _HEAD.size
            name = os.fsdecode(data[place : place + length].rstrip(b"\0"))
            place += length
            if mask & _OVERFLOW:
                self.is_complete = False
            elif name:
                self._opened.add(name)
