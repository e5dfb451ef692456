"""Child process: a traced step -> the program that XLA makes of it for one GPU."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

from tfdyno.core.choose.program import Program, Rematerialisation
from tfdyno.core.messages.compile import COMPILE, StepCompiled
from tfdyno.process import child
from tfdyno.runtime.compile import xla_gpu
from tfdyno.runtime.compile.target import target_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxlib.mlir import ir

    from tfdyno.core.messages.compile import CompileStep

LARGEST_ELEMENTS = 2**31 - 1  # offsets in XLA's kernels and in cuDNN are 32-bit
SAY_EVERY_S = 5.0
FUSED_AWAY = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.iota", "stablehlo.constant"})


def compile_step(request: CompileStep, progress: child.Progress) -> StepCompiled:
    """Compile a step for one card.

    Raises:
        ToolError: The compiler is missing or refused the step.
    """
    xla_gpu.prepare()
    from tfdyno.runtime.trace.stablehlo import read_module

    start = time.perf_counter()
    module = read_module(request.stablehlo)
    if _largest_elements(module) > LARGEST_ELEMENTS:
        return StepCompiled(program=None)
    about = f"compiling {request.title} at batch {request.batch_size} for {request.family}"
    with told(about, progress):
        compiled = xla_gpu.compile_module(module, target_text(request.target))
    program = _program(compiled, request, time.perf_counter() - start)
    progress(f"{about}: {len(program.kernels)} kernels, {program.seconds_s:.1f} s")
    return StepCompiled(program=program)


def _program(compiled: xla_gpu.Compiled, request: CompileStep, seconds_s: float) -> Program:
    from tfdyno.kernels.hlo.kernels import KernelReader
    from tfdyno.kernels.hlo.plan import plan_of
    from tfdyno.kernels.hlo.text import parse
    from tfdyno.kernels.records import Sizes

    hlo = parse(compiled.hlo_text)
    sizes = Sizes(request.batch_size, request.marker)
    train = request.mode == "train"
    buffers = plan_of(hlo, sizes, compiled.totals, request.tensors, train=train)
    return Program(
        trace_sha256=request.trace_sha256,
        route="exact",
        family=request.family,
        batch_size=sizes.batch_size,
        marker=sizes.marker,
        kernels=KernelReader(hlo, sizes, train=train).kernels(),
        buffers=buffers,
        seconds_s=seconds_s,
        versions=xla_gpu.versions(),
        rematerialisation=_rematerialisation(compiled, buffers.peak_at(sizes.batch_size)),
    )


def _rematerialisation(compiled: xla_gpu.Compiled, held_bytes: float) -> Rematerialisation | None:
    """Return what XLA computes again, in the bytes of the buffer plan.

    XLA's account during the pass is not the plan's, which it makes later; what the pass saved is
    the same in both.
    """
    told = compiled.rematerialisation
    if told is None:
        return None
    return Rematerialisation(
        need_bytes=held_bytes + told.before_bytes - told.after_bytes,
        held_bytes=held_bytes,
        limit_bytes=float(told.limit_bytes),
        limit_met=told.limit_met,
        instruction_count=told.instruction_count,
    )


def _largest_elements(module: ir.Module) -> int:
    """Return elements of the largest tensor that the compiled step may hold."""
    from math import prod

    from jaxlib.mlir import ir

    largest = 0

    def visit(operation: ir.Operation) -> ir.WalkResult:
        nonlocal largest
        if operation.name not in FUSED_AWAY:
            for result in operation.results:
                kind = result.type
                if isinstance(kind, ir.RankedTensorType):
                    largest = max(largest, prod(kind.shape))
        return ir.WalkResult.ADVANCE

    with module.context:
        module.operation.walk(visit)
    return largest


@contextlib.contextmanager
def told(about: str, progress: child.Progress) -> Iterator[None]:
    """Say what is being done, and every few seconds how long it has taken."""
    progress(about)
    done, start = threading.Event(), time.perf_counter()

    def tell() -> None:
        while not done.wait(SAY_EVERY_S):
            progress(f"{about}: {time.perf_counter() - start:.0f} s")

    threading.Thread(target=tell, daemon=True).start()
    try:
        yield
    finally:
        done.set()


if __name__ == "__main__":
    child.leave(child.serve(compile_step, COMPILE))
