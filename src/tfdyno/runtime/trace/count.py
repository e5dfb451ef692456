"""Child process: the quick programs of a step that another interpreter traced.

Request: ``trace`` (fields of ``Trace``), ``stablehlo`` (its file) and ``lowering`` as the trace
child takes it. Result: the programs of ``quick.programs_of``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tfdyno.core.base.codec import from_builtins
from tfdyno.core.choose.program import TODAY
from tfdyno.core.choose.workload import Trace
from tfdyno.process import child


def handle(request: child.Request, progress: child.Progress) -> dict[str, Any]:
    """Read the StableHLO and count its operations."""
    from tfdyno.runtime.trace.quick import programs_of
    from tfdyno.runtime.trace.stablehlo import read_module

    progress("counting its operations")
    trace = from_builtins(request["trace"], Trace, where="the trace")
    module = read_module(Path(request["stablehlo"]))
    return programs_of(module, trace, request.get("lowering", TODAY))


if __name__ == "__main__":
    child.leave(child.serve(handle))
