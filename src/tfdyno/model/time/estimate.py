"""One estimate: program, card, batch and settings in; time and memory with intervals out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.estimate import Estimate
from tfdyno.core.choose.explanation import Exchange, Width
from tfdyno.core.choose.generation import Software
from tfdyno.core.choose.hardware import CPU_VENDOR, Cluster, Gpu
from tfdyno.core.choose.time_model import MemoryModel, TimeModel
from tfdyno.core.choose.workload import Mode, Trace
from tfdyno.model.time import detail, energy, intervals, memory, scaling, step
from tfdyno.model.time.calibrate.steps import swept_width, warnings_on_cpus
from tfdyno.model.time.explanation import Basis, explain
from tfdyno.model.time.kernel_table import KernelTable
from tfdyno.model.time.precision import (
    gradient_bytes,
    is_single,
    peak_flops_per_s,
    precision_warnings,
    tf32_allowed,
)
from tfdyno.model.time.scaling import efficiency_range, loses_more
from tfdyno.model.time.terms import Pricing
from tfdyno.model.time.timing import Timing, timing_of

if TYPE_CHECKING:
    from tfdyno.core.choose.explanation import Explanation
    from tfdyno.core.choose.program import Program


PACKED = "graph"
"""Execution whose gradients go in one pack: tf.distribute, as Keras calls it, joins all of them
into one tensor before it sends them (``bytes_per_pack`` 0), so the backward pass hides nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCase:
    """A step on one kind of card, with the settings that it runs under."""

    trace: Trace
    """Parameters and policy."""
    gpu: Gpu
    batch_size: int
    """Samples per replica."""
    replicas: int = 1
    """Cards that train together, or serve side by side, each with its own batch."""
    cluster: Cluster | None = None
    """What joins them; needed when several train together."""
    precision: str
    """Policy that was asked for; empty: the trace's own, with TF32 where the card has it.
    ``float32`` is strict."""
    mode: Mode
    execution: str
    """xla or graph; eager-torch and compiled-torch are for scoring."""
    time_model: TimeModel
    memory_model: MemoryModel
    software: Software | None = None
    """Release that the constants are asked for; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """Time of a step and what it consists of."""

    setting: step.Setting
    terms_s: dict[str, float]
    step_s: Interval
    timing: Timing
    exchange: Exchange | None
    width: Width


def estimate_step(
    case: StepCase,
    *,
    time_program: Program,
    memory_program: Program,
    verified: bool = False,
    details: bool = True,
    limit_program: Program | None = None,
    explained: bool = False,
) -> Estimate:
    """Estimate one step on one kind of card.

    Args:
        case: What is estimated.
        time_program: Kernels that the time is summed over.
        memory_program: Program whose buffer plan answers for memory (may be the same).
        verified: Whether ``memory_program`` was compiled at this very batch. Where XLA runs, its
            best figure then decides ``fits``.
        details: Whether to fill ``layers`` and ``roofline`` (slower, much longer output).
        limit_program: Program that knows how memory grows with the batch, where
            ``memory_program`` holds at one batch only.
        explained: Whether to fill ``explanation``.

    Returns:
        The estimate of one step; ``flops_per_step`` and ``energy_j_per_step`` are of all replicas.

    Raises:
        ValueError: The batch or replicas are below 1, the cluster is missing or of another size,
            or a program without a marker is asked for another batch than its own.
    """
    batch_size, replicas, cluster = case.batch_size, case.replicas, case.cluster
    _check(time_program, memory_program, batch_size=batch_size, replicas=replicas)
    if replicas == 1 or case.mode != "train":
        case = replace(case, cluster=None)
    elif cluster is None or cluster.replicas != replicas:
        raise ValueError(f"{replicas} replicas need a link between them")
    timed = _time(time_program, case)
    software, model = case.software, case.time_model
    return Estimate(
        gpu=case.gpu.slug,
        replicas=replicas,
        **_joined_fields(timed, case),
        batch_size=batch_size,
        global_batch_size=batch_size * replicas,
        mode=case.mode,
        precision=case.precision or case.trace.policy,
        execution=case.execution,
        software=software.name if software else "",
        generation=model.generation,
        swept_by=model.swept.words if model.swept else "",
        made_by={"time": time_program.route, "memory": memory_program.route},
        compiled_for=memory_program.family or time_program.family,
        sources=_sources(case),
        explanation=_explained(time_program, timed, case) if explained else None,
        **_time_fields(time_program, timed, case),
        **_memory_fields(
            memory_program, timed, case, verified=verified, growing=limit_program or memory_program
        ),
        **_detail_fields(time_program, memory_program, timed, case, details=details),
    )


def _time(program: Program, case: StepCase) -> _Timed:
    model, family = case.time_model, intervals.model_family(KernelTable.of(program))
    setting = step.Setting(
        execution=case.execution,
        mode=case.mode,
        transformer=family == "transformer",
        fused_optimizer=not is_single(case.precision or case.trace.policy),
        loss_scaled=case.mode == "train" and case.trace.policy == "mixed_float16",
    )
    timing = timing_of(
        program, case.batch_size, case.gpu, setting, model,
        tf32_allowed=tf32_allowed(case.precision),
    )  # fmt: skip
    alone = timing.alone
    compute_s, memory_s = float(alone.compute_s[0]), float(alone.memory_s[0])
    exchange = _exchange(case, compute_s + memory_s)
    launch_s = float(alone.launch_s[0])
    best = float(alone.step_s[0]) + (exchange.exposed_s if exchange else 0.0)
    plain = intervals.width(
        model.intervals, family=family, mode=case.mode, execution=case.execution,
        gpu=case.gpu, launch_share=launch_s / best,
        by_kernel=None if timing.work is None else model.measured_capabilities,
    )  # fmt: skip
    width = swept_width(plain, program, case.batch_size, case.gpu, model.swept, timing.work)
    step_s = intervals.around(best, width.log_half_width_ratio)
    if timing.graph is not None and case.mode == "infer":
        step_s, width = intervals.with_unmeasured_call(step_s, width)
    return _Timed(
        setting=setting,
        terms_s={
            "compute": compute_s,
            "memory": memory_s,
            "launch": launch_s,
            "communication": exchange.whole_s if exchange else 0.0,
            "input": 0.0,
        },
        step_s=step_s,
        timing=timing,
        exchange=exchange,
        width=width,
    )


def _explained(program: Program, timed: _Timed, case: StepCase) -> Explanation:
    pricing = Pricing(
        gpu=case.gpu,
        tf32_allowed=tf32_allowed(case.precision),
        cards=timed.timing.cards,
        setting=timed.setting,
        time_model=case.time_model,
    )
    basis = Basis(
        program=program,
        batch_size=case.batch_size,
        pricing=pricing,
        timing=timed.timing,
        exchange=timed.exchange,
        width=timed.width,
    )
    return explain(basis)


def _exchange(case: StepCase, device_s: float) -> Exchange | None:
    """Return the gradient exchange; none where a card trains alone."""
    if case.cluster is None:
        return None
    return scaling.exchange(
        gradient_bytes=gradient_bytes(case.trace.trainable_parameter_count, case.trace.policy),
        cluster=case.cluster,
        device_s=device_s,
        execution=case.execution,
        packed=case.execution == PACKED,
        constants=case.time_model,
    )


def _joined_fields(timed: _Timed, case: StepCase) -> dict[str, Any]:
    """Return what joins the cards, and what their exchange costs."""
    cluster, found = case.cluster, timed.exchange
    if cluster is None or found is None:
        return {"link": ""}
    network = cluster.network
    near = cluster.bridge or cluster.inside or network
    ports = f"{cluster.ports}x" if cluster.ports > 1 else ""
    best = 1.0 - found.exposed_s / timed.step_s.best
    more = loses_more(case.trace, case.precision, case.execution)
    return {
        "link": near.slug if near else "",
        "nodes": cluster.nodes,
        "network": f"{ports}{network.slug}" if network else "",
        "exposed_s": found.exposed_s,
        "efficiency_ratio": efficiency_range(
            best, case.time_model, nodes=cluster.nodes, unexplained=more
        ),
    }


def _time_fields(program: Program, timed: _Timed, case: StepCase) -> dict[str, Any]:
    table, best = KernelTable.of(program), timed.step_s
    flops = float(table.flops.sum(axis=0) @ (1.0, case.batch_size))
    samples = float(case.batch_size * case.replicas)
    peak = peak_flops_per_s(case.gpu, case.precision, case.trace.policy)
    forward = detail.forward_kernels(program.kernels)
    how = case.execution, case.time_model
    joules = energy.step_energy_j(
        step_s=best,
        compute_s=timed.terms_s["compute"],
        memory_s=timed.terms_s["memory"],
        tdp_w=case.gpu.tdp_w,
        model=case.time_model,
    ).times(case.replicas)
    return {
        "step_s": best,
        "samples_per_s": best.under(samples),
        "forward_ratio": detail.forward_ratio(program.kernels, timed.timing.seconds),
        "bound_by": max(timed.terms_s, key=timed.terms_s.__getitem__),
        "terms_s": timed.terms_s,
        "flops_per_step": flops * case.replicas,
        "mfu_ratio": flops / best.best / peak,
        "energy_j_per_step": joules,
        "energy_kwh_per_epoch": energy.epoch_energy_kwh(
            joules,
            samples=case.trace.samples_per_epoch,
            batch_size=case.batch_size * case.replicas,
        ),
        "compile_s": energy.compile_time_s(energy.compile_work(program.kernels), *how),
        "forward_compile_s": energy.compile_time_s(energy.compile_work(forward), *how),
    }


def _memory_fields(
    program: Program, timed: _Timed, case: StepCase, *, verified: bool, growing: Program
) -> dict[str, Any]:
    gpu, execution, model = case.gpu, case.execution, case.memory_model
    held = memory.predict_memory(
        program, gpu=gpu, batch_size=case.batch_size, execution=execution, model=model
    )
    usable = float(gpu.usable_memory_bytes)
    runs = verified and execution == "xla"
    fits = memory.verdict(program, held, usable_bytes=usable, verified=runs, model=model)
    most = memory.max_batch_size(growing, gpu=gpu, execution=execution, model=model)
    if most is not None and program is not growing:  # what was made at this batch knows better
        holds = held.device_bytes.best <= usable
        most = max(most, case.batch_size) if holds else min(most, case.batch_size - 1)
    return {
        "peak_memory_bytes": held.peak_bytes,
        "memory_parts_bytes": held.parts_bytes,
        "context_bytes": held.context_bytes,
        "device_memory_bytes": held.device_bytes,
        "usable_memory_bytes": usable,
        "fits": fits,
        "fits_verified": verified and fits in ("yes", "no"),
        "max_batch_size": most,
        "max_batch_verified": False,
        "rematerialisation": program.rematerialisation,
        "process_memory_bytes": None if gpu.vendor == CPU_VENDOR else held.process_bytes,
        "memory_measured_on": model.measured_on.get(
            f"{case.mode} {execution} {memory.generation(gpu)}", ""
        ),
        "warnings": _warnings(timed, case, fits, most),
    }


def _detail_fields(
    program: Program, held_in: Program, timed: _Timed, case: StepCase, *, details: bool
) -> dict[str, Any]:
    table, batch_size = KernelTable.of(program), case.batch_size
    seconds = timed.timing.seconds
    found: dict[str, Any] = {"class_s": detail.seconds_by_kind(table, seconds)}
    if details:
        found["layers"] = detail.layer_times(program.kernels, seconds, batch_size)
        found["roofline"] = detail.roofline_points(program.kernels, seconds, batch_size)
        found["largest_buffers"] = detail.held_buffers(held_in.buffers, batch_size)
        found["live_curve_bytes"] = detail.live_curve(held_in.buffers, batch_size)
    return found


def _check(*programs: Program, batch_size: int, replicas: int) -> None:
    if batch_size < 1 or replicas < 1:
        raise ValueError(f"need batch_size and replicas >= 1, got {batch_size} and {replicas}")
    for program in programs:
        if program.marker == 0 and program.batch_size != batch_size:
            raise ValueError(
                f"the {program.route} program holds at batch {program.batch_size} only, "
                f"not at {batch_size}"
            )


def _warnings(timed: _Timed, case: StepCase, fits: str, most: int | None) -> tuple[str, ...]:
    gpu = case.gpu
    if gpu.vendor == CPU_VENDOR:
        return warnings_on_cpus(fits, most, case.batch_size)
    found = list(precision_warnings(gpu, case.precision, case.trace.policy))
    if timed.terms_s["launch"] > intervals.LAUNCH_BOUND_SHARE * timed.step_s.best:
        found.append(
            "The GPU waits for launches for much of the step; a larger batch helps more than a "
            "faster card."
        )
    law = timed.timing.work is not None
    unseen = (
        gpu.compute_capability not in case.time_model.measured_capabilities
        if law
        else intervals.unseen(gpu, case.execution)
    )
    if unseen and law:
        found.append(
            f"No step of today's software was measured on a card of compute capability "
            f"{gpu.compute_capability}; the interval is wider for it."
        )
    elif unseen:
        found.append(
            f"No published measurement of TensorFlow is of a card of compute capability "
            f"{gpu.compute_capability}; the interval is at least ±40 %."
        )
    if case.cluster and loses_more(case.trace, case.precision, case.execution):
        found.append(
            "As a graph in 16 bits, networks with batch normalisation lost up to half in published "
            "runs on several cards, over every link; the range of the efficiency reaches down to "
            "that."
        )
    if case.software and case.software.note:
        found.append(case.software.note)
    if fits == "unverified":
        found.append("Whether it fits has not been verified by a compile.")
    if most is None:
        found.append(
            f"The largest batch is not known: the batch of {case.batch_size:,} is part of the "
            "model."
        )
    return tuple(found)


def _sources(case: StepCase) -> tuple[str, ...]:
    gpu, cluster = case.gpu, case.cluster
    found = (
        f"time model {case.time_model.version}",
        f"memory model {case.memory_model.version}",
        f"{gpu.name}: {gpu.source}",
        f"usable memory: {gpu.usable_memory_source}",
        *((case.time_model.swept.words,) if case.time_model.swept else ()),
    )
    links = (cluster.inside, cluster.bridge, cluster.network) if cluster else ()
    return (*found, *(f"{link.slug}: {link.source}" for link in links if link))
