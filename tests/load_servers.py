"""Starts ``load_server.py`` for a test, and kills it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPT = Path(__file__).with_name("load_server.py")


def started(port: int = 0, **options: Any) -> tuple[subprocess.Popen[str], int]:
    """The process and its port."""
    words = [sys.executable, str(SCRIPT), str(port), json.dumps(options)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    return process, int(process.stdout.readline().split()[1])


def ended(process: subprocess.Popen[str]) -> None:
    """Kill it and wait."""
    process.kill()
    process.wait()
    if process.stdout:
        process.stdout.close()


@contextlib.contextmanager
def serving(**options: Any) -> Iterator[str]:
    """``http://127.0.0.1:PORT`` of a server with these options."""
    process, port = started(**options)
    try:
        yield f"http{'s' if options.get('certificate') else ''}://127.0.0.1:{port}"
    finally:
        ended(process)
