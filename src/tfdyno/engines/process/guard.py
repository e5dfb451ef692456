"""A tiny shell beside the children: it kills what a program leaves behind that is itself killed.

A child that watches a pipe from its parent is not enough: while TensorFlow waits for the other
workers of a cluster it lets no other thread of Python run, and what a child has started itself
watches nothing.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator

SHELL = "/bin/sh"
SCRIPT = (
    "trap '' HUP INT TERM; "  # who ends a whole session of processes ends this one last
    'groups=; while read -r group; do groups="$groups -$group"; done; '
    "kill -s KILL -- $groups 2>/dev/null; exit 0"
)
"""Reads groups until the writer is gone, then kills them."""

Guard = Callable[[int], None]


@contextlib.contextmanager
def guarded() -> Iterator[Guard]:
    """Give a function that puts a process group under guard until the block ends.

    Where there is no shell, nothing is guarded, and nothing fails.
    """
    try:
        shell = subprocess.Popen(
            [SHELL, "-c", SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        yield lambda _group: None
        return

    def guard(group: int) -> None:
        assert shell.stdin
        with contextlib.suppress(OSError):
            shell.stdin.write(f"{group}\n".encode())
            shell.stdin.flush()

    try:
        yield guard
    finally:
        # Before its pipe is closed: the groups are gone, and their numbers may belong to others.
        shell.send_signal(signal.SIGKILL)
        shell.wait()
        assert shell.stdin
        with contextlib.suppress(OSError):
            shell.stdin.close()
