"""The compile child with a clock around XLA itself; the result has ``xla_s`` besides."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tfdyno.process import child
from tfdyno.runtime.compile import xla_gpu
from tfdyno.runtime.compile.child import compile_step

if TYPE_CHECKING:
    from jaxlib.mlir import ir


def handle(request: child.Request, progress: child.Progress) -> dict[str, Any]:
    """As ``compile_step``."""
    compile_module, spent_s = xla_gpu.compile_module, 0.0

    def timed(module: ir.Module, target_text: str, *, cards: int = 1) -> xla_gpu.Compiled:
        nonlocal spent_s
        began = time.perf_counter()
        try:
            return compile_module(module, target_text, cards=cards)
        finally:
            spent_s += time.perf_counter() - began

    xla_gpu.compile_module = timed
    return {**compile_step(request, progress), "xla_s": spent_s}


if __name__ == "__main__":
    child.leave(child.serve(handle))
