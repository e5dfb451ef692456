"""Device memory of a step: the buffer plan plus what the plan cannot know."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from tfdyno.core.base.interval import NOTHING, Interval, Scaled
from tfdyno.core.base.settings import BY_OPERATION, MOST_SAMPLES
from tfdyno.core.choose.hardware import CPU_VENDOR
from tfdyno.model.time.kernel_table import KernelTable

if TYPE_CHECKING:
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.program import Program
    from tfdyno.core.choose.time_model import MemoryModel

Verdict = Literal["yes", "no", "unverified", "may not"]
UNFUSED = {"eager-torch": "peak_torch"}
"""Executions whose memory is that of the XLA program times a constant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What a card must hold."""

    peak_bytes: Interval
    """Buffers and library workspaces."""
    parts_bytes: dict[str, float]
    context_bytes: float
    device_bytes: Interval
    """Bytes with context and allocator slack."""
    process_bytes: Interval
    """What nvidia-smi shows of TensorFlow with memory growth: it keeps what it once took."""


def predict_memory(
    program: Program, *, gpu: Gpu, batch_size: int, execution: str, model: MemoryModel
) -> Memory:
    """Predict what one step holds on a card.

        peak    = plan(batch) * route * execution + workspaces [+ slack]
        device  = peak [+ slack] + context
        process = device.low to context + peak * growth

    ``graph`` is a route of its own: its program carries the plan of TensorFlow's executor, and its
    peak the slack: TensorFlow counts a tensor as the chunk that it got. XLA takes all temporaries
    in one piece, so there slack is only what stays unused between. Bytes
    throughout. The ends of the range add the constants' uncertainties as independent ones,
    by the root of the sum of their squares: that all are at their worst at once is not nine in ten.
    Where XLA may take one of two orders, the low end is that of the one that holds less.
    No step needs less than the low end of its plan, however uncertain the workspaces are.
    """
    scratch = planned_scratch(program, model)
    plan = max(0.0, program.buffers.peak_at(batch_size) - scratch)
    held = _held(program, plan, gpu=gpu, execution=execution, model=model)
    least = max(0.0, program.buffers.least_at(batch_size) - scratch)
    if least < plan:
        late = _held(program, least, gpu=gpu, execution=execution, model=model)
        held = held._replace(
            peak=replace(held.peak, low=late.peak.low),
            device=replace(held.device, low=late.device.low),
        )
    parts = program.buffers.parts_at(batch_size)
    grown = plan * (held.plan_ratio - 1.0)
    parts["activations"] = max(0.0, parts.get("activations", 0.0) + grown)
    parts["workspace"] = parts.get("workspace", 0.0) - scratch + held.cublas.best + held.cudnn.best
    parts["context"] = held.context.best
    parts["allocator"] = held.slack.best
    return Memory(
        peak_bytes=held.peak,
        parts_bytes=parts,
        context_bytes=held.context.best,
        device_bytes=held.device,
        process_bytes=_process(held.peak, held.device, held.context, model),
    )


class _Held(NamedTuple):
    """What a step holds, in bytes, and what it is made of."""

    plan_ratio: float
    """What the plan is multiplied by."""
    cublas: Interval
    cudnn: Interval
    slack: Interval
    context: Interval
    peak: Interval
    device: Interval


def _held(program: Program, plan: float, *, gpu: Gpu, execution: str, model: MemoryModel) -> _Held:
    graph = execution == "graph"
    route = _range(model, f"peak_{'graph' if graph else program.route}")
    name = UNFUSED.get(execution)
    unfused = _range(model, name) if name else Interval(low=1.0, best=1.0, high=1.0)
    cpus = gpu.vendor == CPU_VENDOR
    cublas, cudnn = (NOTHING, NOTHING) if cpus else workspaces(program, model, execution)
    held = _sum(
        route.times(plan * unfused.best), _spread(unfused, plan * route.best), cublas, cudnn
    )
    held = replace(held, low=max(held.low, plan * route.low * unfused.low))
    context = NOTHING if cpus else _range(model, f"context_{generation(gpu)}")
    slack = _range(model, "allocator_slack").times(held.best)
    return _Held(
        plan_ratio=route.best * unfused.best,
        cublas=cublas,
        cudnn=cudnn,
        slack=slack,
        context=context,
        peak=_sum(held, slack) if graph else held,
        device=_sum(held, slack, context),
    )


def _process(peak: Interval, device: Interval, context: Interval, model: MemoryModel) -> Interval:
    """Return what the process has taken when it trains; never less than the step needs."""
    growth = _range(model, "process_growth")
    taken = _sum(growth.times(peak.best), context)
    return Interval(
        low=device.low, best=max(device.best, taken.best), high=max(device.high, taken.high)
    )


def verdict(
    program: Program, memory: Memory, *, usable_bytes: float, verified: bool, model: MemoryModel
) -> Verdict:
    """Say whether the step fits.

    A compiled plan answers yes or no when its interval lies on one side of the limit and "may
    not" otherwise; when the very batch was compiled (``verified``) the best figure decides. The
    quick route is believed only when it is clearly away from the limit.
    """
    device = memory.device_bytes
    if verified and program.route == "exact":
        return "yes" if device.best <= usable_bytes else "no"
    quick = program.route == "quick"
    margin = 1.0 + (model["unverified_margin"] if quick else 0.0)
    if device.high * margin <= usable_bytes:
        return "yes"
    if device.low > usable_bytes * margin:
        return "no"
    return "unverified" if quick else "may not"


def max_batch_size(program: Program, *, gpu: Gpu, execution: str, model: MemoryModel) -> int | None:
    """Return the largest batch whose best device memory fits the card; 0 when one sample does not.

    Every moment of the plan is affine in the batch, so the answer is a division for each, at most
    ``MOST_SAMPLES``. A program that holds at one batch only (no marker) knows none: None.
    """

    def needed_bytes(peak_bytes: float) -> float:
        plan = max(0.0, peak_bytes - scratch)
        return _held(program, plan, gpu=gpu, execution=execution, model=model).device.best

    limit = float(gpu.usable_memory_bytes)
    if program.marker == 0:
        return None
    scratch = planned_scratch(program, model)
    plan_bytes, most_bytes = program.buffers.peak_at(1), program.buffers.peak_at(2**20)
    device_bytes = needed_bytes(plan_bytes)
    if device_bytes > limit:
        return 0
    per_plan_byte = (needed_bytes(most_bytes) - device_bytes) / max(1.0, most_bytes - plan_bytes)
    room = plan_bytes + (limit - device_bytes) / max(per_plan_byte, 1e-9)
    moments = program.buffers.envelope or (program.buffers.peak_bytes,)
    fitting = ((room - m.fixed) / m.per_sample for m in moments if m.per_sample > 0.0)
    return int(min([MOST_SAMPLES, *fitting]) * (1.0 + 1e-12))


def planned_scratch(program: Program, model: MemoryModel) -> float:
    """Return bytes planned for cuBLASLt, which autotuning replaces by what the call needs."""
    if program.route != "exact" or "gemm" not in _kinds(program):
        return 0.0
    planned = program.buffers.parts_bytes.get("workspace", Scaled()).at(program.batch_size)
    return max(0.0, min(planned, model["workspace_planned"]))


def workspaces(
    program: Program, model: MemoryModel, execution: str = "xla"
) -> tuple[Interval, Interval]:
    """Return scratch bytes of cuBLAS and cuDNN, each only where the step needs it."""
    kinds = _kinds(program)
    cudnn = "workspace_cudnn_graph" if execution in BY_OPERATION else "workspace_cudnn"
    return (
        _range(model, "workspace_cublas") if "gemm" in kinds else NOTHING,
        _range(model, cudnn) if "convolution" in kinds else NOTHING,
    )


def _kinds(program: Program) -> set[str]:
    return {cost_class.kind for cost_class in KernelTable.of(program).classes}


def _sum(*parts: Interval) -> Interval:
    """Return the sum of independent amounts."""
    best = sum(part.best for part in parts)
    below = math.hypot(*(part.best - part.low for part in parts))
    above = math.hypot(*(part.high - part.best for part in parts))
    return Interval(low=max(0.0, best - below), best=best, high=best + above)


def _spread(factor: Interval, amount: float) -> Interval:
    """Return only the uncertainty of a factor that another amount already contains."""
    return factor.times(amount).plus(-factor.best * amount)


def _range(model: MemoryModel, name: str) -> Interval:
    constant = model.parameters[name]
    return Interval(low=constant.low, best=constant.value, high=constant.high)


def generation(gpu: Gpu) -> int:
    """Return whose context the card has: its compute capability's first number, 6 to 10."""
    return min(10, max(6, int(gpu.compute_capability.split(".")[0])))
