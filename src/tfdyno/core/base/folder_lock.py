"""One run per folder: a lock that ends with the process, however it ends.

Windows has no such lock: there every run is let in.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError, UsageError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from pathlib import Path

_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


class FolderLock:
    """Holds a folder for one process until ``close``, or until the process is gone."""

    def __init__(self, folder: Path, name: str = ".lock") -> None:
        """Take the lock.

        Args:
            folder: That is to be held.
            name: Of the file in it that is locked, and stays.

        Raises:
            UsageError: Another run holds the folder; the sentence names its process.
            ToolError: The folder cannot be written, or not be locked.
        """
        self._file = -1
        if fcntl is None:
            return
        try:
            self._file = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            why = error.strerror or str(error)
            raise ToolError(f"cannot write to {folder}", why=why) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, 200, 0).decode(errors="replace").strip()
            self.close()
            raise UsageError(
                f"{folder} is in use by another run",
                why=holder or "its process has just started",
                remedy="wait for its end, stop it, or give another folder",
            ) from None
        except OSError as error:
            # A file system without locks: nothing to hold, and no reason to refuse.
            if error.errno not in _NO_LOCKS:
                self.close()
                why = error.strerror or str(error)
                raise ToolError(f"cannot lock {folder}", why=why) from None
        else:
            os.ftruncate(self._file, 0)
            line = f"process {os.getpid()} on {os.uname().nodename}\n"
            os.pwrite(self._file, line.encode(), 0)
        # A forked child (a loader of the user's data) shares the lock and may outlive this process.
        os.register_at_fork(after_in_child=self.close)

    def close(self) -> None:
        """Give the folder back; a second call does nothing."""
        # Closing a copy after a fork keeps the parent's lock; unlocking would end it.
        if self._file >= 0:
            with contextlib.suppress(OSError):
                os.close(self._file)
        self._file = -1


def is_held(folder: Path, name: str = ".lock") -> bool:
    """Whether a process holds the folder, without taking it; False where that cannot be told."""
    if fcntl is None:
        return False
    try:
        file = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    finally:
        os.close(file)
    return False
