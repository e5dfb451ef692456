"""Compile a traced step for a GPU family: once per distinct program, cached, in a child."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from tfdyno.catalog.families import driver_bytes_per_s, served_by
from tfdyno.catalog.families import family as family_named
from tfdyno.core.base.codec import from_json, learned, to_json
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.choose.program import Program
from tfdyno.core.messages.compile import (
    COMPILE,
    COMPILE_SHARDED,
    CompileSharded,
    CompileStep,
    ShardedPlan,
    Target,
)
from tfdyno.jobs.child.worker import run_child, silent
from tfdyno.jobs.choose.trace import Traced, code_digest, kept_trace, trace
from tfdyno.probe.python.versions import version
from tfdyno.store.cache import default_cache
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.sharding import ShardingKind

TIMEOUT_S = 900.0  # ResNet-50 takes 10 s, a slow machine with a large model minutes
AMPLE_MEMORY_BYTES = 4 * 10**12  # nothing is recomputed to save memory
PACKAGES = ("jaxlib", "jax-cuda12-pjrt", "nvidia-cuda-nvcc-cu12")


class TooLargeError(ToolError):
    """XLA compiles no step with a tensor of so many elements."""


def compile_exact(
    traced: Traced,
    *,
    family: str,
    batch_size: int | None = None,
    real: bool = False,
    gpu: Gpu | None = None,
    progress: Callable[[str], None] = silent,
) -> Program:
    """Return the program that XLA makes of a step for a GPU family.

    By default it is compiled once, with so much memory that nothing is recomputed, and serves every
    batch: at the marker batch of the trace, or at the marker prime itself where the model has
    attention (sequences make the tensors large enough already: at the larger batch XLA fuses
    differently than at those that are used) or where a tensor is too large at the marker batch.
    Where it is too large at the prime too, it is compiled at ``batch_size``.

    Args:
        traced: The step, at its marker batch.
        family: Slug of the family: ``8.x``.
        batch_size: The batch that is asked for; needed where one program cannot serve every batch.
        real: Compile at ``batch_size`` itself: verification of a final answer.
        gpu: With ``real``: the very card and its memory; ``rematerialisation`` then says what XLA
            computes again to keep to it.
        progress: Called with a line at every stage.

    Raises:
        UsageError: The family is unknown, or ``real`` without a batch.
        TooLargeError: A tensor of the step is too large at the batch.
        ToolError: The compiler is missing, does not know the family, refused, or was stopped; the
            quick route still answers.
    """
    _check(traced, family, batch_size, real)
    if real and batch_size:
        at_batch = _at(traced, batch_size, progress)
        return _required(_compiled(at_batch, family, gpu, progress), at_batch)
    program = _serving(traced, family, progress)
    if program is None and batch_size and batch_size != traced.trace.batch_size:
        program = _compiled(_at(traced, batch_size, progress), family, None, progress)
    return _required(program, traced)


def compile_sharded(
    traced: Traced,
    *,
    gpu: Gpu,
    family: str,
    batch_size: int,
    kind: ShardingKind,
    cards: int,
    progress: Callable[[str], None] = silent,
) -> float:
    """Return bytes that XLA's plan holds on each of several cards that share one step.

    Args:
        traced: The step, at any batch.
        gpu: The card.
        family: Its family.
        batch_size: Of all cards together.
        kind: How the step is shared; not a pipeline.
        cards: That share it.
        progress: Called with a line at every stage.

    Raises:
        ToolError: The compiler is missing, does not know the family, refused, or was stopped.
    """
    _check(traced, family, batch_size, real=True)
    at_batch = _at(traced, batch_size, progress)
    request = CompileSharded(
        stablehlo=at_batch.stablehlo_path,
        target=_target(family_named(_served(traced, family)).representative, AMPLE_MEMORY_BYTES),
        title=traced.trace.title,
        tensors=at_batch.trace.tensors,
        kind=kind,
        cards=cards,
    )
    doing = f"compiling {traced.trace.title} for {cards} x {gpu.name}"

    def make(folder: Path) -> None:
        result = run_child(
            COMPILE_SHARDED,
            request,
            progress=progress,
            timeout_s=TIMEOUT_S,
            doing=doing,
        )
        (folder / "plan.json").write_bytes(to_json(result))

    key = hashlib.sha256(to_json([_key(at_batch, family, gpu), kind, cards])).hexdigest()
    folder = default_cache().entry("sharded", key, make)
    return from_json((folder / "plan.json").read_bytes(), ShardedPlan).held_bytes


def cached_exact(traced: Traced, *, family: str) -> Program | None:
    """Return the program of ``compile_exact`` if the cache has it; compiles and traces nothing.

    A program that holds at one batch size only is not looked for.
    """
    if _has_more(traced, family):
        return None
    try:
        key = _key(traced, _served(traced, family), None)
    except UsageError:
        return None
    return _stored(default_cache().root / "serving" / key)


def cached_real(traced: Traced, *, family: str, batch_size: int, gpu: Gpu) -> Program | None:
    """Return the program of ``compile_exact`` with ``real`` and a card if the cache has it."""
    same = batch_size == traced.trace.batch_size
    at_batch = traced if same else kept_trace(traced.trace.workload, batch_size=batch_size)
    if at_batch is None or _has_more(traced, family):
        return None
    return _stored(default_cache().root / "program" / _key(at_batch, _served(traced, family), gpu))


def _check(traced: Traced, family: str, batch_size: int | None, real: bool) -> None:
    chosen = family_named(family)
    if not chosen.supported:
        what = f"compute capability {family} cannot be compiled for"
        raise ToolError(what, why=chosen.reason)
    if _has_more(traced, family):
        raise ToolError(say("XLA compiles cuDNN's attention only where the card is"))
    if real and not batch_size:
        raise UsageError("a real compile needs a batch size")


def _has_more(traced: Traced, family: str) -> bool:
    """Return whether cuDNN does something of the step on these cards that no compile can have."""
    return traced.fused_on(float(family.removesuffix(".x"))) is not None


def _serving(traced: Traced, family: str, progress: Callable[[str], None]) -> Program | None:
    """Return the program for every batch; None: a tensor is too large at the marker prime too."""

    def make(folder: Path) -> None:
        program = None
        for batch_size in _marker_batches(traced):
            step = _at(traced, batch_size, progress)
            program = _compiled(step, family, None, progress)
            if program:
                break
        (folder / "program.json").write_bytes(to_json(program))

    key = _key(traced, _served(traced, family), None)
    return _stored(default_cache().entry("serving", key, make))


def _at(traced: Traced, batch_size: int, progress: Callable[[str], None]) -> Traced:
    """Return the same step traced at another batch."""
    if batch_size == traced.trace.batch_size:
        return traced
    progress(f"tracing {traced.trace.title} at batch {batch_size} too")
    return trace(traced.trace.workload, batch_size=batch_size, progress=progress)


def _marker_batches(traced: Traced) -> list[int]:
    """Return the batches at which one program for all can be made, best first."""
    batch_size, prime = traced.trace.batch_size, traced.trace.marker
    if prime in (0, batch_size):
        return [batch_size]
    return [prime] if _attention(traced.program) else [batch_size, prime]


def _compiled(
    traced: Traced, family: str, gpu: Gpu | None, progress: Callable[[str], None]
) -> Program | None:
    """Take it from the cache or from a child; None: a tensor is too large to be compiled."""
    served = _served(traced, family)
    about = family_named(served)
    memory = gpu.usable_memory_bytes if gpu else AMPLE_MEMORY_BYTES
    request = CompileStep(
        stablehlo=traced.stablehlo_path,
        target=_target(gpu or about.representative, memory),
        title=traced.trace.title,
        family=served,
        batch_size=traced.trace.batch_size,
        marker=0 if gpu else traced.trace.marker,
        trace_sha256=traced.trace.stablehlo_sha256,
        tensors=traced.trace.tensors,
        mode=traced.trace.workload.mode,
    )
    doing = f"compiling {traced.trace.title} for compute capability {served}"

    def make(folder: Path) -> None:
        result = run_child(
            COMPILE,
            request,
            progress=progress,
            timeout_s=TIMEOUT_S,
            doing=doing,
        )
        (folder / "program.json").write_bytes(to_json(result.program))

    folder = default_cache().entry("program", _key(traced, served, gpu), make)
    return _stored(folder)


def _stored(folder: Path) -> Program | None:
    try:
        return msgspec.json.decode(
            (folder / "program.json").read_bytes(), type=learned(Program | None)
        )
    except FileNotFoundError:
        return None


def _required(program: Program | None, traced: Traced) -> Program:
    if program is None:
        raise TooLargeError(
            f"{traced.trace.title} cannot be compiled at batch {traced.trace.batch_size}",
            why="a tensor has more than 2,147,483,647 elements",
            remedy="name a smaller batch with --batch-size",
        )
    return program


def _served(traced: Traced, family: str) -> str:
    return served_by(family, policy=traced.trace.policy, attention=_attention(traced.program))


def _attention(program: Program) -> bool:
    """Return whether the quick program has batched matrix products: one a head, as attention."""
    return any(
        kernel.kind == "gemm" and kernel.dims.get("batch", (1,))[0] > 1
        for kernel in program.kernels
    )


def _target(gpu: Gpu, memory_bytes: int) -> Target:
    return Target(
        compute_capability=gpu.compute_capability,
        sm_count=gpu.sm_count,
        cuda_cores=gpu.rates.cuda_cores,
        max_threads=gpu.rates.max_threads,
        registers=gpu.rates.registers,
        shared_memory_bytes=gpu.rates.shared_memory_bytes,
        shared_memory_per_block_bytes=gpu.rates.shared_memory_per_block_bytes,
        memory_bytes=memory_bytes,
        memory_bytes_per_s=driver_bytes_per_s(gpu),
        l2_bytes=gpu.l2_bytes,
        clock_hz=gpu.boost_hz,
    )


def _key(traced: Traced, served: str, gpu: Gpu | None) -> str:
    """Digest of all that the program depends on: step, target, compiler, our reading of it."""
    card = gpu or family_named(served).representative
    facts = {
        "trace": traced.trace.tensors,
        "stablehlo": traced.trace.stablehlo_sha256,
        "batch": [traced.trace.batch_size, 0 if gpu else traced.trace.marker],
        "mode": traced.trace.workload.mode,
        "target": _target(card, gpu.usable_memory_bytes if gpu else AMPLE_MEMORY_BYTES),
        "versions": [version(name) for name in PACKAGES],
        "code": code_digest(),
    }
    return hashlib.sha256(to_json(facts)).hexdigest()
