"""A limit of memory for a run on CPUs: what takes more is killed, as a full machine would do it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError
from tfdyno.core.base.units import format_bytes
from tfdyno.engines.process.process import ChildCrash

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOK_S = 0.05
"""Between two looks: a step that fills a gigabyte takes longer."""


class MemoryWatch:
    """Ends a process whose resident memory, with that of its children, is over the limit."""

    def __init__(self, limit_bytes: int) -> None:
        """Watch nothing yet; a limit of 0 is none."""
        self._limit_bytes = limit_bytes
        self._over = threading.Event()
        self._seen_bytes = 0

    def watch(self, pid: int) -> None:
        """Begin with this process."""
        if self._limit_bytes:
            threading.Thread(target=self._look, args=(pid,), daemon=True).start()

    @contextlib.contextmanager
    def told(self, doing: str) -> Iterator[None]:
        """Say, until the block ends, that a run was killed for its memory.

        Raises:
            ToolError: It took more than the limit.
        """
        try:
            yield
        except ChildCrash:
            if not self._seen_bytes:
                raise
            raise ToolError(
                f"{doing} ran out of memory",
                why=f"it took {format_bytes(self._seen_bytes)}, and the limit is "
                    f"{format_bytes(self._limit_bytes)}",
            ) from None  # fmt: skip
        finally:
            self._over.set()

    def _look(self, pid: int) -> None:
        import psutil

        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            while not self._over.wait(LOOK_S):
                held_bytes = _resident_bytes(process)
                if held_bytes > self._limit_bytes:
                    self._seen_bytes = held_bytes
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                    return


def _resident_bytes(process: object) -> int:
    """Sum over a process and what it has started; what ends meanwhile counts nothing."""
    import psutil

    assert isinstance(process, psutil.Process)
    total = 0
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += int(one.memory_info().rss)
    return total
