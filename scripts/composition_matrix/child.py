"""Child process: cells of one strategy, one after the other, in one process.

TensorFlow fails where several ``MirroredStrategy`` are made in one process, so all cells share one;
each has its own model. What comes out of a cell is told at once, as one line of JSON among the
lines of progress: a process that dies takes no earlier cell with it.
"""

from __future__ import annotations

import json
import re
import sys
import time
from typing import TYPE_CHECKING, Any

from composition_matrix.cells import CELLS, Cell, TrainCells, recipe_of
from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.messages.child import Nothing
from tfdyno.process import child

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Strategy

LENGTH = 200
"""Characters of a reason that are kept."""
GRAPH = "Graph execution error"
AROUND = ("Detected at node", "File ", "2 root error", "[[{{")
"""Beginnings of lines that TensorFlow puts around what went wrong in a graph."""


def handle(request: TrainCells, progress: child.Progress) -> Nothing:
    """Train all cells; a cell that fails is told and the next begins."""
    progress("importing TensorFlow")
    strategy = _strategy(request.cells[0])
    from composition_matrix.trained import RUNS, Wrong

    for cell in request.cells:
        progress(json.dumps({"begins": cell.name}))
        began_s = time.monotonic()
        row: dict[str, Any] = {"name": cell.name}
        try:
            row |= {"status": "ok", **RUNS[request.side](cell, strategy)}
        except Wrong as error:
            row |= {"status": "wrong", "reason": str(error)}
        except Exception as error:  # whatever TensorFlow raises is what is to be told
            row |= {"status": "error", "kind": type(error).__name__, "reason": reason(error)}
        row["seconds_s"] = round(time.monotonic() - began_s, 2)
        progress(json.dumps(row))
    return Nothing()


def reason(error: BaseException) -> str:
    """What an error says, in one line without addresses and what lies around it."""
    if isinstance(error, TfdynoError):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and lines[0].startswith(GRAPH):
        lines = [line for line in lines[1:] if not line.startswith(AROUND)]
    elif lines and lines[0].startswith("Exception encountered when calling"):
        lines = lines[1:]
    text = re.sub(r"0x[0-9a-f]+|\x1b\[[0-9;]*m", "", " ".join(lines[:1] or [""]))
    text = re.sub(r"^\(0\) [A-Z_]+: +|\(defined @[^)]*\) |^.*?Error: ", "", text)
    text = re.sub(r"'[^']*/[^']*'|\S*/replica_\d+/\d+|\{$", "…", text)
    return text if len(text) <= LENGTH else text[: LENGTH - 1] + "…"


def _strategy(cell: Cell) -> Strategy:
    """Of all cells; a server or worker beside servers does not come back from here."""
    import tensorflow as tf

    from tfdyno.runtime.recipe.strategy import is_chief, make_strategy

    tf.get_logger().setLevel("ERROR")  # every cell traces anew, which it warns of
    if cell.strategy == "ps" and not is_chief():
        from tfdyno.runtime.recipe.parameter_server import serve_forever

        serve_forever()
    return make_strategy(recipe_of(cell))


if __name__ == "__main__":
    child.leave(child.serve(handle, CELLS))
    sys.exit()
