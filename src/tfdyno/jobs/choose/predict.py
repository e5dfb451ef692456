"""One traced workload against many cards: what ``estimate`` and ``advise`` have in common."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tfdyno.catalog.assumptions import assumed
from tfdyno.catalog.clusters import cluster_of, find_network
from tfdyno.catalog.families import family_of
from tfdyno.catalog.links import find_link
from tfdyno.catalog.time_model import memory_model, time_model
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import MOST_SAMPLES
from tfdyno.core.choose.hardware import CPU_VENDOR, VENDOR
from tfdyno.core.choose.program import Program
from tfdyno.core.choose.recalibration import Anchor, Recalibration
from tfdyno.jobs.choose._anchors import anchors_for, subject_of
from tfdyno.jobs.choose._programs import FUSED, fuses_attention, quick_program
from tfdyno.jobs.choose.trace import Traced, trace
from tfdyno.jobs.machine.card_files import Sweeps, stored_sweeps
from tfdyno.jobs.machine.wheels import supported
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.hardware import Cluster, Gpu
    from tfdyno.core.choose.time_model import TimeModel
    from tfdyno.core.choose.workload import Trace, Workload


LIKE_PYTORCH = "tensorflow 2.10"
"""Release whose program stands for PyTorch's: one kernel for each layer, fused as before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSettings:
    """How a step is asked to run; what is left out, the script, Keras or the card decide."""

    precision: str = ""
    """``tf32`` and strict ``float32`` apart; empty: the script's own."""
    execution: str = ""
    """One of ``settings.EXECUTIONS``; empty: what Keras would do."""
    link: str = ""
    """Slug of the interconnect; empty: the one that the card has by itself."""
    network: str = ""
    """What joins machines: ``ib-hdr-200``, or with its ports ``8xib-hdr-200``; empty: all cards are
    in one."""
    gpus_per_node: int = 0
    """0: as many as a node usually has."""


PLAIN = StepSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor(StepSettings):
    """A trace with the settings of the run; answers for any card."""

    traced: Traced
    batch_size: int
    """Samples of each replica."""
    batch_source: str
    """Who named it, in words."""
    exact: dict[str, Program] = field(default_factory=dict)
    """Compiled programs by GPU family."""
    proven: dict[tuple[str, int, int], Program] = field(default_factory=dict)
    """Programs compiled at a batch itself for the memory of a card, by GPU family, batch and bytes
    of memory: they settle whether it fits."""
    exact_time: bool = False
    """Whether the time is summed over the compiled kernels too."""
    anchors: tuple[Anchor, ...] = ()
    """What the user measured of this model: it moves the estimates."""
    sweeps: Sweeps = field(default_factory=Sweeps)
    """What the user's sweeps found of cards: it moves the constants of the law."""

    def estimate(
        self,
        gpu: Gpu,
        *,
        replicas: int = 1,
        batch_size: int = 0,
        details: bool = False,
        explained: bool = False,
    ) -> Estimate:
        """Estimate one step on ``replicas`` cards; ``batch_size`` 0 is the predictor's own."""
        size = batch_size or self.batch_size
        kept = self.traced.estimates
        swept = self.sweeps.of(gpu, self.traced.software)
        moved = self.exact or self.proven or self.anchors or swept
        if kept is None or details or moved:
            return self._estimate(gpu, replicas, size, details, explained)
        own = (self.precision, self.execution, self.link, self.network, self.gpus_per_node)
        key = (gpu, replicas, size, explained, *own)
        if key not in kept:
            kept[key] = self._estimate(gpu, replicas, size, details, explained)
        return kept[key]

    def _estimate(
        self, gpu: Gpu, replicas: int, size: int, details: bool, explained: bool
    ) -> Estimate:
        from tfdyno.model.time.batch_copy import copy_s, fit_step_s
        from tfdyno.model.time.estimate import StepCase, estimate_step
        from tfdyno.model.time.recalibration import recalibrated

        model = self.model_for(gpu, replicas)
        execution = self.execution_on(gpu, replicas)
        quick = quick_program(self.traced, gpu, execution)
        held = quick_program(self.traced, gpu) if execution == "eager-torch" else quick
        # what XLA's compiler says holds for XLA only
        compiled = self._compiled(gpu, size) if execution == "xla" else None
        settled = (self._proof(gpu, size) if execution == "xla" else None) or compiled
        is_torch = execution in settings.TORCH_EXECUTIONS
        case = StepCase(
            trace=self.traced.trace,
            gpu=gpu,
            batch_size=size,
            replicas=replicas,
            cluster=self.cluster(gpu, replicas),
            precision=self.precision,
            mode=self.traced.trace.workload.mode,
            execution=execution,
            time_model=model,
            memory_model=memory_model(),
            software=None if is_torch else self.traced.software,
        )
        found = estimate_step(
            case,
            time_program=compiled if compiled and self.exact_time else quick,
            memory_program=settled or held,
            verified=settled is not None and settled.batch_size == size,
            details=details,
            limit_program=compiled if compiled and compiled.marker else held,
            explained=explained,
        )
        if gpu.vendor != CPU_VENDOR and not is_torch:
            found = replace(found, copy_s=copy_s(found, self.traced.software, model.swept))
        if execution == "xla" and fuses_attention(self.traced, gpu):
            found = replace(found, warnings=(*found.warnings, say(FUSED)))
        found = recalibrated(found, self.recalibration(gpu, replicas=replicas))
        return replace(found, fit_step_s=fit_step_s(found))

    def model_for(self, gpu: Gpu, replicas: int = 1) -> TimeModel:
        """Return the constants for a card: with those of its sweep, where it was swept.

        A measurement of this very model on the card says more, and was compared with an estimate
        that no sweep had moved.
        """
        software = self.traced.software
        if self.recalibration(gpu, replicas=replicas).own_card:
            return time_model(software.generation)
        return self.sweeps.model_for(time_model(software.generation), gpu, software)

    def recalibration(self, gpu: Gpu, *, replicas: int = 1) -> Recalibration:
        """Return what the user's own measurements say of this model on a card."""
        from tfdyno.model.time.recalibration import recalibration

        subject = subject_of(
            self.traced.trace,
            precision=self.precision,
            execution=self.execution_on(gpu, replicas),
        )
        if subject is None or not self.anchors:
            return Recalibration()
        return recalibration(self.anchors, subject, gpu.slug)

    def program_for(self, gpu: Gpu, replicas: int = 1) -> Program:
        """Return the compiled program that serves the card, else the quick one."""
        execution = self.execution_on(gpu, replicas)
        compiled = self.exact.get(family_name(gpu)) if self.exact and execution == "xla" else None
        return compiled or quick_program(self.traced, gpu, execution)

    def _compiled(self, gpu: Gpu, batch_size: int) -> Program | None:
        """Return the program of the card's family, where it holds at the batch."""
        program = self.exact.get(family_name(gpu)) if self.exact else None
        return program if program and (program.marker or program.batch_size == batch_size) else None

    def _proof(self, gpu: Gpu, batch_size: int) -> Program | None:
        """Return the program compiled at the very batch for this much memory.

        One for less serves too where XLA keeps everything in it: with more it does the same.
        """
        for (family, size, memory_bytes), program in self.proven.items():
            if (family, size) != (family_name(gpu), batch_size):
                continue
            keeps = program.rematerialisation is None and memory_bytes <= gpu.usable_memory_bytes
            if keeps or memory_bytes == gpu.usable_memory_bytes:
                return program
        return None

    def execution_for(self, replicas: int) -> str:
        """Return what Keras does: its own choice on one device, graph under a strategy.

        On JAX there is XLA alone: no tf.distribute, no recurrent layers of cuDNN.

        Replicas that serve are processes of their own: each runs as one device does.
        """
        trace = self.traced.trace
        if not self.execution and self.traced.software.framework == "jax":
            return "xla"
        joined = replicas > 1 and trace.workload.mode == "train"
        return self.execution or ("graph" if joined else trace.execution)

    def execution_on(self, gpu: Gpu, replicas: int = 1) -> str:
        """Return what runs on a card: as ``execution_for``, graph where XLA has to fail."""
        if gpu.vendor == CPU_VENDOR or self.leaves_xla(gpu, replicas):
            return "graph"
        return self.execution_for(replicas)

    def leaves_xla(self, gpu: Gpu, replicas: int = 1) -> bool:
        """Return whether XLA would run and the official wheel compiles nothing for the card.

        Whoever asks for XLA has a TensorFlow of their own, and is answered as asked.
        """
        is_default = not self.execution and self.execution_for(replicas) == "xla"
        return is_default and self.xla_fails(gpu)

    def xla_fails(self, gpu: Gpu) -> bool:
        """Return whether XLA of the official wheel compiles nothing for the card."""
        software = self.traced.software
        is_known = software.framework == "tensorflow" and gpu.vendor.upper() == VENDOR
        return is_known and supported(gpu, software.version).xla_fails

    def cluster(self, gpu: Gpu, replicas: int) -> Cluster | None:
        """Return what joins so many cards; None where they exchange nothing."""
        if replicas == 1 or self.traced.trace.workload.mode == "infer":
            return None
        return cluster_of(
            gpu,
            replicas,
            link=self.link,
            network=self.network,
            gpus_per_node=self.gpus_per_node,
        )


def predictor_for(
    workload: Workload | Traced,
    asked: StepSettings = PLAIN,
    *,
    batch_size: int = 0,
    fresh: bool = False,
    card_files: bool = True,
    progress: Callable[[str], None],
) -> Predictor:
    """Trace a workload and settle its batch.

    Args:
        workload: What to trace, or its trace.
        asked: How it runs; the precision decides the Keras policy.
        batch_size: Per replica; 0: the script's own, else Keras' default.
        fresh: Trace again even if the cache has it.
        card_files: Whether the user's sweeps of cards count.
        progress: Called with a line at every stage.

    Raises:
        UsageError: A setting is wrong, the workload cannot be traced, or the file of the user's
            own measurements is damaged.
        ToolError: The trace failed.
    """
    check_batch(batch_size)
    execution = asked.execution
    if execution:
        settings.one_of(execution, settings.EXECUTIONS, "execution")
    if asked.link:
        find_link(asked.link)
    if asked.network:
        find_network(asked.network)
    policy = "float32" if asked.precision == "tf32" else asked.precision
    if isinstance(workload, Traced) and policy in ("", workload.trace.policy):
        named, traced = workload.trace.workload, workload
    else:
        plain = workload.trace.workload if isinstance(workload, Traced) else workload
        named = replace(plain, precision=policy or plain.precision)
        if execution in settings.TORCH_EXECUTIONS and not named.software:
            named = replace(named, software=LIKE_PYTORCH)  # its rows were learned from so
        traced = trace(named, progress=progress, fresh=fresh)
    size, source = _batch(batch_size, traced)
    if not traced.trace.marker and traced.trace.batch_size != size:
        traced = trace(named, batch_size=size, progress=progress, fresh=fresh)
    _check_own_batch(traced.trace, size)
    _check_compiles(traced.trace, execution)
    return Predictor(
        traced=traced,
        batch_size=size,
        batch_source=source,
        precision=asked.precision,
        execution=execution,
        link=asked.link,
        network=asked.network,
        gpus_per_node=asked.gpus_per_node,
        anchors=anchors_for(traced.trace),
        sweeps=stored_sweeps() if card_files else Sweeps(),
    )


def _check_compiles(trace: Trace, execution: str) -> None:
    if execution == "xla" and trace.outside_xla:
        raise UsageError(
            f"XLA cannot compile the step of {trace.title}",
            why=f"it uses {', '.join(trace.outside_xla)}, which exists outside of XLA only",
            remedy="leave --execution out, and train with jit_compile=False",
        )


def check_batch(batch_size: int) -> None:
    """Refuse a batch that is not estimated; raises ``UsageError``. 0 stands for none given."""
    if batch_size < 0:
        raise UsageError(f"a batch of {batch_size} is not possible", remedy="give at least 1")
    if batch_size > MOST_SAMPLES:
        raise UsageError(
            f"a batch of {batch_size:,} is not possible",
            why=f"the largest that is estimated is {MOST_SAMPLES:,}",
            remedy="give the batch of one replica",
        )


def _check_own_batch(trace: Trace, batch_size: int) -> None:
    """Refuse another batch than the one that is part of the model."""
    if not trace.marker and trace.batch_size != batch_size:
        raise UsageError(
            f"{trace.title} cannot be estimated at batch {batch_size:,}",
            why=f"the batch of {trace.batch_size:,} is part of the model",
            remedy="leave the batch out or change the model",
        )


def check_vendor(gpus: tuple[Gpu, ...]) -> None:
    """Refuse cards that XLA's CUDA compiler cannot serve; raises ``UsageError``."""
    foreign = [gpu.name for gpu in gpus if gpu.vendor.upper() not in (VENDOR, CPU_VENDOR)]
    if foreign:
        raise UsageError(
            f"{foreign[0]} cannot be estimated", why="tfdyno knows the kernels of NVIDIA GPUs only"
        )


def shared_batch(global_batch_size: int, replicas: int) -> int:
    """Return the batch of one replica where the sum is fixed.

    Raises:
        UsageError: The sum cannot be divided among the replicas.
    """
    if global_batch_size < 1 or global_batch_size % replicas:
        raise UsageError(
            f"a global batch of {global_batch_size} cannot be shared by {replicas} replicas",
            remedy=f"give a multiple of {replicas}",
        )
    return global_batch_size // replicas


def family_name(gpu: Gpu) -> str:
    """Return the family whose compiled program serves the card."""
    return family_of(gpu).slug


def _batch(asked: int, traced: Traced) -> tuple[int, str]:
    if asked:
        return asked, "as asked"
    if traced.trace.script_batch_size:
        owner = "task" if traced.trace.workload.kind == "task" else "script"
        return traced.trace.script_batch_size, f"the {owner}'s own"
    if not traced.trace.marker:
        return traced.trace.batch_size, "the model's own"
    return assumed().default_batch_size, "assumed: Keras' default"
