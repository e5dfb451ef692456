"""Child process: the quick program of a step that another interpreter traced.

Request: ``trace`` (fields of ``Trace``) and ``stablehlo`` (its file). Result: ``program``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tfdyno.core.codec import from_builtins, to_builtins
from tfdyno.core.workload import Trace
from tfdyno.runtime import child


def handle(request: child.Request, progress: child.Progress) -> dict[str, Any]:
    """Read the StableHLO and count its operations."""
    from tfdyno.runtime.quick import program_of_file

    progress("counting its operations")
    trace = from_builtins(request["trace"], Trace, where="the trace")
    program = program_of_file(
        Path(request["stablehlo"]),
        batch_size=trace.batch_size,
        marker=trace.marker,
        trace_sha256=trace.stablehlo_sha256,
        tensors=trace.tensors,
        mode=trace.workload.mode,
    )
    return {"program": to_builtins(program)}


if __name__ == "__main__":
    child.leave(child.serve(handle))
