"""Starts the processes of each strategy, and collects what comes out of their cells."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composition_matrix.cells import CELLS, TrainCells
from tfdyno.core.base.errors import ToolError
from tfdyno.engines.rendezvous.tf_config import Task, multiworker, parameter_server
from tfdyno.jobs.child.worker import run_child
from tfdyno.jobs.child.workers import run_children

if TYPE_CHECKING:
    from collections.abc import Mapping

    from composition_matrix.cells import Cell

SCRIPTS = Path(__file__).parents[1]
CELL_LIMIT_S = 90.0
START_LIMIT_S = 120.0
PORTION = 48
"""Cells of one process: what TensorFlow keeps of each adds up."""
POISONED = ("collective", "unbound", "aborted", "cancelled", "unavailable")
"""Words of an error that an earlier cell may have left behind in the process."""

Row = dict[str, Any]
Keep = Callable[[Row], None]


@dataclass(slots=True, kw_only=True)
class Portion:
    """Cells of one process while it runs: what it tells, and which of it is believed."""

    keep: Keep
    seen: set[str] = field(default_factory=set)
    """Cells whose rows came."""
    running: str = ""
    doubted: str = ""
    """A cell whose error may be that of an earlier one."""

    def hear(self, line: str) -> None:
        """Take a line of progress; those that are no JSON are stages of the start."""
        if not line.startswith("{"):
            return
        told = json.loads(line)
        if "begins" in told:
            self.running = told["begins"]
            return
        is_first = not self.seen
        if self.doubted:
            return  # what follows a doubted cell is to be done again as well
        if told["status"] == "error" and not is_first and _is_poisoned(told):
            self.doubted = told["name"]
            return
        self.seen.add(told["name"])
        self.keep(told)


def run_cells(side: str, cells: Sequence[Cell], keep: Keep, logs: Path) -> None:
    """Run cells, those of a strategy in processes of their own; each row is given at once.

    A process that dies loses the cell that it died in, and the next begins after it. An error that
    may come from an earlier cell is not believed: the cell is tried in a fresh process.

    Args:
        side: ``tfdyno`` or ``keras``.
        cells: What to run; none that the recipe refuses for ``tfdyno``.
        keep: Takes each row: the cell's ``name``, its ``status`` (ok, wrong, error, died) etc.
        logs: Folder of the output of several processes.

    Raises:
        ToolError: A process did not come as far as its first cell.
    """
    for strategy, group in groupby(sorted(cells), key=lambda cell: cell.strategy):
        left = list(group)
        while left:
            now = left[:PORTION]
            done = _portion(side, strategy, now, keep, logs)
            if not done:
                raise ToolError(f"no cell of {strategy} was run")
            left = [cell for cell in left if cell.name not in done]


def _portion(side: str, strategy: str, cells: Sequence[Cell], keep: Keep, logs: Path) -> set[str]:
    portion = Portion(keep=keep)
    request = TrainCells(side=side, cells=tuple(cells))
    common: dict[str, Any] = {
        "progress": portion.hear,
        "timeout_s": START_LIMIT_S + CELL_LIMIT_S * len(cells),
        "env": _environment(),
        "doing": f"the cells of {strategy}",
    }
    try:
        if tasks := _tasks(strategy):
            run_children(CELLS, [request] * len(tasks), tasks, logs=logs,
                         start_timeout_s=START_LIMIT_S, **common)  # fmt: skip
        else:
            run_child(CELLS, request, **common)
    except ToolError as error:
        if not portion.running or portion.running in portion.seen:
            raise
        if not portion.doubted:
            keep({"name": portion.running, "status": "died", "reason": error.why or error.what})
            portion.seen.add(portion.running)
    return portion.seen


def _tasks(strategy: str) -> tuple[Task, ...]:
    return {"multiworker": multiworker(2), "ps": parameter_server()}.get(strategy, ())


def _environment() -> Mapping[str, str]:
    paths = [str(SCRIPTS), os.environ.get("PYTHONPATH", "")]
    return {"KERAS_BACKEND": "tensorflow", "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _is_poisoned(row: Row) -> bool:
    return any(word in row["reason"].lower() for word in POISONED)
