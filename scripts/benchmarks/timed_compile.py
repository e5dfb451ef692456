"""The compile child with a clock around XLA itself."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.messages.child import Child
from tfdyno.core.messages.compile import CompileStep, StepCompiled
from tfdyno.process import child
from tfdyno.runtime.compile import xla_gpu
from tfdyno.runtime.compile.child import compile_step

if TYPE_CHECKING:
    from jaxlib.mlir import ir


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimed:
    """What the child answers, and the seconds that XLA took."""

    made: StepCompiled
    xla_s: float


TIMED_COMPILE = Child(module="benchmarks.timed_compile", request=CompileStep, result=StepTimed)


def handle(request: CompileStep, progress: child.Progress) -> StepTimed:
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
    made = compile_step(request, progress)
    return StepTimed(made=made, xla_s=spent_s)


if __name__ == "__main__":
    child.leave(child.serve(handle, TIMED_COMPILE))
