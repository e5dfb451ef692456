"""Locks on files that end with their process, however it ends.

By the standard library alone: a training locks its checkpoints in the user's interpreter, which has
no package of tfdyno's. Where there are no such locks (Windows, some network file systems), all are
let in.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import time
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError, UsageError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

POLL_S = 0.02
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
_OPEN: set[FileLock] = set()


class FileLock:
    """Holds the lock of a file, which stays, until ``close`` or until the process is gone."""

    def __init__(self, path: Path, *, shared: bool = False, patience_s: float = 0.0) -> None:
        """Take the lock.

        Args:
            path: The file; it is made in a folder that exists.
            shared: Hold it beside others that share it.
            patience_s: Wait so long for those who hold it.

        Raises:
            TimeoutError: Another holds it all the while.
            OSError: The file cannot be opened or not be locked.
        """
        until_s = time.monotonic() + patience_s
        self.file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        _OPEN.add(self)
        try:
            while not _take(self.file, shared=shared):
                if time.monotonic() >= until_s:
                    raise TimeoutError(errno.ETIMEDOUT, "another process holds it", str(path))
                time.sleep(POLL_S)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the lock back; a second call does nothing."""
        if self in _OPEN:
            _OPEN.remove(self)
            with contextlib.suppress(OSError):
                os.close(self.file)

    def __enter__(self) -> Self:
        """Return itself: it is locked already."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close it."""
        self.close()


def lock_folder(folder: Path, name: str = ".lock") -> FileLock:
    """Hold a folder for one run.

    Args:
        folder: The folder, which exists.
        name: Name of the file in it that is locked; it says who holds the lock.

    Raises:
        UsageError: Another run holds the folder; the sentence names its process.
        ToolError: The folder cannot be written, or not be locked.
    """
    path = folder / name
    try:
        lock = FileLock(path)
    except TimeoutError:
        holder = ""
        with contextlib.suppress(OSError):
            holder = path.read_text(errors="replace").strip()
        raise UsageError(
            f"{folder} is in use by another run",
            why=holder or "its process has just started",
            remedy="wait for its end, stop it, or give another folder",
        ) from None
    except OSError as error:
        raise ToolError(f"cannot write to {folder}", why=error.strerror or str(error)) from None
    with contextlib.suppress(OSError):  # a full disk: the name is for the message of others only
        os.ftruncate(lock.file, 0)
        os.write(lock.file, f"process {os.getpid()} on {platform.node()}\n".encode())
    return lock


def is_held(folder: Path, name: str = ".lock") -> bool:
    """Return whether a process holds the folder, without taking it; False: that cannot be told."""
    try:
        file = os.open(folder / name, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _take(file, shared=True)
    except OSError:
        return False
    finally:
        os.close(file)


def _take(file: int, *, shared: bool) -> bool:
    """Take the lock; True as well where there are no locks and nobody can be kept out."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


def _close_all() -> None:
    for lock in tuple(_OPEN):
        lock.close()


if fcntl is not None:
    # A forked child (a loader of the user's data) shares the locks and may outlive this process.
    # Closing its copies leaves them with the parent; unlocking would end them.
    os.register_at_fork(after_in_child=_close_all)
