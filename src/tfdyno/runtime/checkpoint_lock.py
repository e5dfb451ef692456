"""One run per folder: a lock that ends with the process, however it ends."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from typing import TYPE_CHECKING

from tfdyno.core.errors import ToolError, UsageError

try:
    import fcntl
except ImportError:  # Windows has no such lock
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from pathlib import Path

LOCK_NAME = ".lock"
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


class FolderLock:
    """Holds a folder for one process until ``release``, or until the process is gone."""

    def __init__(self, folder: Path) -> None:
        """Take the lock.

        Raises:
            UsageError: Another run holds the folder; the sentence names its process.
            ToolError: The folder cannot be written.
        """
        self.held = False
        path = folder / LOCK_NAME
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            why = error.strerror or str(error)
            raise ToolError(f"cannot write to {folder}", why=why) from None
        try:
            self._take()
        except BlockingIOError:
            holder = os.pread(self._file, 200, 0).decode(errors="replace").strip()
            os.close(self._file)
            raise UsageError(
                f"{folder} is in use by another run",
                why=holder or "its process has just started",
                remedy="wait for its end, stop it, or give another folder",
            ) from None
        # A forked child (a loader of the user's data) shares the lock and may outlive this process.
        os.register_at_fork(after_in_child=self._forget)

    def _take(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                os.close(self._file)
                raise
            return  # a file system without locks: nothing to hold, and no reason to refuse
        self.held = True
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)

    def _forget(self) -> None:
        # Closing a copy keeps the parent's lock; unlocking would end it.
        if self._file >= 0:
            with contextlib.suppress(OSError):
                os.close(self._file)
        self._file = -1

    def release(self) -> None:
        """Give the folder back; a second call does nothing."""
        self.held = False
        self._forget()
