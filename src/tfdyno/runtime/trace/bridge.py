"""Child process: HLO that TensorFlow wrote -> StableHLO and its quick programs.

Request: ``hlo`` and ``stablehlo`` (paths), ``trace`` (the fields of ``Trace`` but for the digest)
and ``lowering``. Result: ``trace`` and the programs as the trace child returns them.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

from tfdyno.core.base.codec import from_builtins, to_builtins
from tfdyno.core.choose.program import TODAY
from tfdyno.core.choose.workload import Trace
from tfdyno.process import child


def handle(request: child.Request, progress: child.Progress) -> dict[str, Any]:
    """Convert, write the StableHLO and count its operations."""
    from tfdyno.runtime.trace.hlo_bridge import stablehlo_of
    from tfdyno.runtime.trace.quick import programs_of

    progress("reading TensorFlow's program")
    module = stablehlo_of(Path(request["hlo"]).read_bytes())
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    code = buffer.getvalue()
    Path(request["stablehlo"]).write_bytes(code)
    digest = hashlib.sha256(code).hexdigest()
    trace = from_builtins(
        {**request["trace"], "stablehlo_sha256": digest}, Trace, where="the trace"
    )
    progress("counting its operations")
    programs = programs_of(module, trace, request.get("lowering", TODAY))
    return {"trace": to_builtins(trace), **programs}


if __name__ == "__main__":
    child.leave(child.serve(handle))
