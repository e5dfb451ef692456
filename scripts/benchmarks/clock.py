"""Run a command and read what it cost from the operating system."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GOOD = frozenset({0})
LAST_WORDS = 200
"""Characters of a failed command's last line that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One run of a command."""

    wall_s: float
    first_s: float
    """When the first words came on standard output; all of ``wall_s`` where none did."""
    cpu_s: float
    """User and system time of the process and of the children it waited for."""
    peak_bytes: int
    """Most memory that the process held at once."""
    stdout: str
    stderr: str


class Failed(Exception):  # noqa: N818  (a row without a figure, not a fault of the benchmark)
    """The command did not end well; the text says why."""


def run(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    good: frozenset[int] = GOOD,
    folder: Path | None = None,
) -> Cost:
    """Run a command to its end.

    Args:
        command: Program and arguments.
        env: Variables that are set over those of this process.
        good: Exit codes of a run that did its work.
        folder: Where it runs; None: here.

    Raises:
        Failed: It ended with another exit code.
    """
    with tempfile.TemporaryFile("w+") as errors:
        began = time.perf_counter()
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, env={**os.environ, **env}, cwd=folder
        )
        assert child.stdout
        with child.stdout:
            output = child.stdout.read(1)
            first_s = time.perf_counter() - began
            output += child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        told = errors.read()
        if child.returncode not in good:
            lines = told.strip().splitlines() or ["no message"]
            raise Failed(f"exit code {child.returncode}: {lines[-1][:LAST_WORDS]}")
        return Cost(
            wall_s=wall_s,
            first_s=first_s if output else wall_s,
            cpu_s=usage.ru_utime + usage.ru_stime,
            peak_bytes=usage.ru_maxrss * 1024,  # KiB on Linux
            stdout=output.decode(),
            stderr=told,
        )


def tfdyno(*words: str) -> list[str]:
    """The command line of this environment."""
    return [str(Path(sys.executable).with_name("tfdyno")), *words]
