"""Child process: HLO that TensorFlow wrote -> StableHLO and its quick programs."""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.messages.trace import BRIDGE, Bridged
from tfdyno.process import child

if TYPE_CHECKING:
    from tfdyno.core.messages.trace import BridgeStep


def handle(request: BridgeStep, progress: child.Progress) -> Bridged:
    """Convert, write the StableHLO and count its operations."""
    from tfdyno.runtime.trace.hlo_bridge import stablehlo_of
    from tfdyno.runtime.trace.quick import programs_of

    progress("reading TensorFlow's program")
    module = stablehlo_of(request.hlo.read_bytes())
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    code = buffer.getvalue()
    request.stablehlo.write_bytes(code)
    trace = replace(request.trace, stablehlo_sha256=hashlib.sha256(code).hexdigest())
    progress("counting its operations")
    return Bridged(trace=trace, programs=programs_of(module, trace, request.lowering))


if __name__ == "__main__":
    child.leave(child.serve(handle, BRIDGE))
