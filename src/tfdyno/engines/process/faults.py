"""Which of several processes that failed is at fault, and what the failure was about."""

from __future__ import annotations

import csv
import functools
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.engines.process.process import ChildCrash, Process
from tfdyno.engines.rendezvous.tf_config import task_name

if TYPE_CHECKING:
    from collections.abc import Sequence

TABLE = Path(__file__).parents[1] / "data" / "faults.csv"
READ_LINES = 8
"""How many of its last lines say why a process crashed."""
ACCUSED = re.compile(r"/job:(\w+)/(?:replica:\d+/)?task:(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fault:
    """The failure of one process."""

    process: Process
    error: Exception

    @property
    def is_echo(self) -> bool:
        """Whether it says no more than that another process is gone."""
        text = evidence(self)
        return _is("echo", text) or tells_of_a_loss(text)

    @property
    def is_port_taken(self) -> bool:
        """Whether it could not listen on its port."""
        return _is("port_taken", evidence(self))


def culprit(faults: Sequence[Fault]) -> Fault:
    """Find who failed first of those with a cause of their own; without such, the first."""
    return min(faults, key=lambda fault: (fault.is_echo, fault.process.ended_s))


def evidence(fault: Fault) -> str:
    """Return the text that tells why the process failed."""
    error = fault.error
    if not isinstance(error, ChildCrash):
        return str(error)
    if error.child_exit_code == -signal.SIGKILL:
        return ""  # from outside, whatever it printed before
    return "\n".join(list(fault.process.lines)[-READ_LINES:])


def tells_of_a_loss(text: str) -> bool:
    """Return whether TensorFlow itself says in it that another process is gone."""
    return _is("lost", text)


def accused(fault: Fault) -> str:
    """Name of the task that TensorFlow says it has lost, the last one that it names; or empty."""
    return accused_in(evidence(fault)) if fault.is_echo else ""


def accused_in(text: str) -> str:
    """Name of the last task of which TensorFlow speaks; or empty."""
    named = ACCUSED.findall(text)
    return task_name(named[-1][0], int(named[-1][1])) if named else ""


def _is(kind: str, text: str) -> bool:
    return any(row["kind"] == kind and row["words"] in text for row in _rows())


@functools.cache
def _rows() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, strict=True))
