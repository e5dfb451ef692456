"""Code that runs with its standard error on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys


def on_terminal(code: str) -> str:
    """What Python code shows on a terminal of 120 columns; it ends well and prints nothing else."""
    leader, follower = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", code], stderr=follower, stdout=subprocess.PIPE, check=False,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"},
    )  # fmt: skip
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(leader)
    text = shown.decode()
    assert done.returncode == 0, text
    assert done.stdout == b""
    return text
