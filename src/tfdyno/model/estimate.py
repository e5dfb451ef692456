"""One estimate: program, card, batch and settings in; time and memory with intervals out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.estimate import Estimate
from tfdyno.core.interval import Interval
from tfdyno.model import detail, energy, intervals, kernel_time, memory, scaling, step
from tfdyno.model.kernel_table import KernelTable
from tfdyno.model.precision import (
    gradient_bytes,
    peak_flops_per_s,
    precision_warnings,
    tf32_allowed,
)

if TYPE_CHECKING:
    from tfdyno.core.hardware import Gpu, Link
    from tfdyno.core.program import Program
    from tfdyno.core.time_model import MemoryModel, TimeModel
    from tfdyno.core.workload import Mode, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """Time of a step and what it consists of."""

    terms_s: dict[str, float]
    step_s: Interval
    device_s: float
    family: str
    rates: kernel_time.Rates
    how: step.Factors


def estimate_step(
    *,
    time_program: Program,
    memory_program: Program,
    trace: Trace,
    gpu: Gpu,
    batch_size: int,
    replicas: int = 1,
    link: Link | None = None,
    precision: str,
    mode: Mode,
    execution: str,
    time_model: TimeModel,
    memory_model: MemoryModel,
    verified: bool = False,
    details: bool = True,
) -> Estimate:
    """Estimate one step on one kind of card.

    Args:
        time_program: Kernels that the time is summed over.
        memory_program: Program whose buffer plan answers for memory (may be the same).
        trace: What was traced: parameters, policy.
        gpu: The card.
        batch_size: Samples per replica.
        replicas: Cards that train together, each with its own batch.
        link: What joins them; needed when ``replicas`` is above 1.
        precision: Policy that was asked for; empty: the trace's own, with TF32 where the card
            has it. ``float32`` is strict.
        mode: train or infer.
        execution: xla, graph, or eager-torch (for scoring).
        time_model: Constants of the time model.
        memory_model: Constants of the memory model.
        verified: Whether ``memory_program`` was compiled at this very batch.
        details: Whether to fill ``layers`` and ``roofline`` (slower, much longer output).

    Returns:
        The estimate of one step; ``flops_per_step`` and ``energy_j_per_step`` are of all replicas.

    Raises:
        ValueError: The batch or replicas are below 1, a link is missing, or a program without a
            marker is asked for another batch than its own.
    """
    _check(time_program, memory_program, batch_size=batch_size, replicas=replicas, link=link)
    timed = _time(
        time_program, trace, gpu, batch_size, replicas, link, precision, mode, execution, time_model
    )
    table = KernelTable.of(time_program)
    held = memory.predict_memory(
        memory_program, gpu=gpu, batch_size=batch_size, execution=execution, model=memory_model
    )
    fits = memory.verdict(
        memory_program,
        held,
        usable_bytes=gpu.usable_memory_bytes,
        verified=verified,
        model=memory_model,
    )
    seconds = detail.kernel_seconds(table, batch_size, timed.rates, timed.how, time_model)
    flops = float(table.flops.sum(axis=0) @ (1.0, batch_size))
    samples = float(batch_size * replicas)
    best = timed.step_s
    kernels = time_program.kernels
    return Estimate(
        gpu=gpu.slug,
        replicas=replicas,
        link=link.slug if link and replicas > 1 else "",
        batch_size=batch_size,
        global_batch_size=batch_size * replicas,
        mode=mode,
        precision=precision or trace.policy,
        execution=execution,
        step_s=best,
        samples_per_s=Interval(
            low=samples / best.high, best=samples / best.best, high=samples / best.low
        ),
        peak_memory_bytes=held.peak_bytes,
        memory_parts_bytes=held.parts_bytes,
        context_bytes=held.context_bytes,
        device_memory_bytes=held.device_bytes,
        usable_memory_bytes=float(gpu.usable_memory_bytes),
        fits=fits,
        max_batch_size=memory.max_batch_size(
            memory_program, gpu=gpu, execution=execution, model=memory_model
        ),
        max_batch_verified=False,
        bound_by=max(timed.terms_s, key=timed.terms_s.__getitem__),
        terms_s=timed.terms_s,
        flops_per_step=flops * replicas,
        mfu_ratio=flops / best.best / peak_flops_per_s(gpu, precision, trace.policy),
        energy_j_per_step=energy.step_energy_j(
            step_s=best,
            compute_s=timed.terms_s["compute"],
            memory_s=timed.terms_s["memory"],
            tdp_w=gpu.tdp_w,
            model=time_model,
        ).times(replicas),
        compile_s=energy.compile_time_s(float(table.launches.sum()), execution, time_model),
        made_by={"time": time_program.route, "memory": memory_program.route},
        warnings=_warnings(timed, gpu, precision, trace, held, fits),
        sources=_sources(gpu, link if replicas > 1 else None, time_model, memory_model),
        layers=detail.layer_times(kernels, seconds, batch_size) if details else (),
        roofline=detail.roofline_points(kernels, seconds, batch_size) if details else (),
        class_s=detail.seconds_by_kind(table, seconds),
    )


def _time(
    program: Program,
    trace: Trace,
    gpu: Gpu,
    batch_size: int,
    replicas: int,
    link: Link | None,
    precision: str,
    mode: Mode,
    execution: str,
    model: TimeModel,
) -> _Timed:
    table = KernelTable.of(program)
    family = intervals.model_family(table)
    setting = step.Setting(execution=execution, mode=mode, transformer=family == "transformer")
    how = step.factors(setting, model)
    card = kernel_time.targets([(gpu, tf32_allowed(precision))], model.sustained_clock)
    rates = kernel_time.rates(table.classes, card, model)
    alone = step.step_time(table.work(batch_size), table.classes, rates, how, model)
    device_s = float(alone.compute_s[0] + alone.memory_s[0])
    exchange_s, exposed_s = _exchange(trace, gpu, replicas, link, setting, device_s, model)
    terms = {
        "compute": float(alone.compute_s[0]),
        "memory": float(alone.memory_s[0]),
        "launch": float(alone.launch_s[0]),
        "communication": exchange_s,
        "input": 0.0,
    }
    best = float(alone.step_s[0]) + exposed_s
    width = intervals.log_half_width(
        model,
        family=family,
        mode=mode,
        execution=execution,
        gpu=gpu,
        launch_share=terms["launch"] / best,
    )
    return _Timed(
        terms_s=terms,
        step_s=intervals.around(best, width),
        device_s=device_s,
        family=family,
        rates=rates,
        how=how,
    )


def _exchange(
    trace: Trace,
    gpu: Gpu,
    replicas: int,
    link: Link | None,
    setting: step.Setting,
    device_s: float,
    model: TimeModel,
) -> tuple[float, float]:
    if replicas == 1 or setting.mode != "train" or link is None:
        return 0.0, 0.0
    return scaling.communication_s(
        gradient_bytes=gradient_bytes(trace.trainable_parameter_count, trace.policy),
        replicas=replicas,
        gpu=gpu,
        link=link,
        device_s=device_s,
        execution=setting.execution,
        constants=model,
    )


def _check(*programs: Program, batch_size: int, replicas: int, link: Link | None) -> None:
    if batch_size < 1 or replicas < 1:
        raise ValueError(f"need batch_size and replicas >= 1, got {batch_size} and {replicas}")
    if replicas > 1 and link is None:
        raise ValueError(f"{replicas} replicas need a link between them")
    for program in programs:
        if program.marker == 0 and program.batch_size != batch_size:
            raise ValueError(
                f"the {program.route} program holds at batch {program.batch_size} only, "
                f"not at {batch_size}"
            )


def _warnings(
    timed: _Timed, gpu: Gpu, precision: str, trace: Trace, held: memory.Memory, fits: str
) -> tuple[str, ...]:
    found = list(precision_warnings(gpu, precision, trace.policy))
    if timed.terms_s["launch"] > intervals.LAUNCH_BOUND_SHARE * timed.step_s.best:
        found.append(
            "The GPU waits for launches for much of the step; a larger batch, or "
            "steps_per_execution, helps more than a faster card."
        )
    if int(gpu.compute_capability.split(".")[0]) >= intervals.FIRST_UNSEEN_CAPABILITY:
        found.append(
            f"Few cards of compute capability {gpu.compute_capability} have published "
            "measurements; the interval is at least ±40 %."
        )
    if fits == "unverified":
        found.append("Whether it fits has not been verified by a compile.")
    return tuple(found)


def _sources(
    gpu: Gpu, link: Link | None, time_model: TimeModel, memory_model: MemoryModel
) -> tuple[str, ...]:
    found = [
        f"time model {time_model.version}",
        f"memory model {memory_model.version}",
        f"{gpu.name}: {gpu.source}",
        f"usable memory: {gpu.usable_memory_source}",
    ]
    return tuple(found + ([f"{link.slug}: {link.source}"] if link else []))
