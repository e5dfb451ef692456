"""The quick program of a traced step for one card."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.catalog.families import keeps_dear
from tfdyno.catalog.time_model import time_model
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.hardware import CPU_VENDOR, VENDOR
from tfdyno.words.base.language import say_later

if TYPE_CHECKING:
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.program import Program
    from tfdyno.jobs.choose.trace import Traced

FUSED = say_later(
    "Keras on JAX lets cuDNN compute attention in one kernel, which keeps no scores; no such step "
    "was measured on a card."
)


def quick_program(traced: Traced, gpu: Gpu, execution: str = "xla") -> Program:
    """Return the step as it runs on a card in an execution.

    Raises:
        UsageError: The card is this machine's processors, and the step is not known there.
    """
    from tfdyno.model.time.peaks import has_bfloat16

    if gpu.vendor == CPU_VENDOR:
        return _on_cpus(traced)
    narrow, wide = traced.program, traced.widened
    if execution in settings.BY_OPERATION:
        narrow, wide = traced.per_op, traced.per_op_widened
    primitive = execution in time_model(traced.software.generation).kernel_executions
    if execution == "graph" and primitive and traced.per_primitive:
        narrow, wide = traced.per_primitive, traced.per_primitive_widened
    program = narrow if wide is None or has_bfloat16(gpu) else wide
    if execution == "xla":
        program = _fused(traced, gpu) or program
    kept = program.buffers.kept if keeps_dear(gpu) else None
    return replace(program, buffers=kept) if kept else program


def fuses_attention(traced: Traced, gpu: Gpu) -> bool:
    """Return whether cuDNN computes attention of the step on a card, as one kernel."""
    return _fused(traced, gpu) is not None


def _fused(traced: Traced, gpu: Gpu) -> Program | None:
    is_known = gpu.vendor.upper() == VENDOR
    return traced.fused_on(float(gpu.compute_capability)) if is_known else None


def _on_cpus(traced: Traced) -> Program:
    """Return the step as TensorFlow runs its graph on CPUs; raises ``UsageError`` if unknown."""
    from tfdyno.model.time.calibrate.cpu_law import on_cpus

    program = traced.per_primitive
    if program is None or traced.software.framework != "tensorflow":
        raise UsageError(
            f"{traced.software.name} is not estimated on processors",
            why="what was swept is the graph of TensorFlow with Keras 3",
            remedy="leave --tf and --backend out",
        )
    if any(one.kind == "recurrent" for one in program.kernels):
        raise UsageError(
            f"{traced.trace.title} is not estimated on processors",
            why="its recurrent layers are known as cuDNN runs them only",
            remedy="measure it: tfdyno bench",
        )
    return replace(program, kernels=on_cpus(program.kernels))
