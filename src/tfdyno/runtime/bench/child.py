"""Child process: one run of a bench, in a process that has done nothing else before."""

from __future__ import annotations

import contextlib
import datetime
import math
import time
from typing import TYPE_CHECKING

from tfdyno.core.measure.measurement import BenchRun, BenchTask, FirstResults
from tfdyno.core.messages.bench import RUN, MeasuredRun, MeasureRun
from tfdyno.process import child
from tfdyno.runtime.base.software import import_tensorflow, software
from tfdyno.runtime.bench.clock import StepClock

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tfdyno.core.measure.software import Software
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.runtime.base.reference_speed import ReferenceSpeed
    from tfdyno.runtime.bench.fit import Outcome, Plan


def handle(request: MeasureRun, progress: child.Progress) -> MeasuredRun:
    """Measure one run.

    Raises:
        UsageError: The workload, its data or the recipe is wrong, or the user's code fails.
        ToolError: There is not enough memory, or TensorFlow did not take a setting.
    """
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    workload = request.workload
    began = time.perf_counter()
    notes = _began_jax(request, progress) if request.backend == "jax" else None
    if notes is None:
        progress("importing TensorFlow")
        import_tensorflow(workload, "bench", "measure")
    import_s = time.perf_counter() - began
    if notes is None:
        notes = _applied(request)
    progress(f"building {workload.task or workload.reference}")
    began = time.perf_counter()
    bench = _Bench(request, progress)
    outcome = bench.run(notes)
    build_s = bench.first_step_at - began
    run = _run(bench, outcome, started, import_s=import_s, build_s=build_s)
    task = bench.task(outcome, (*notes, *outcome.notes, *_lost(run, outcome)))
    return MeasuredRun(run=run, task=task, software=_software(request))


def _began_jax(request: MeasureRun, progress: child.Progress) -> list[str]:
    """Import JAX, and set what stands before a model is there; returns notes."""
    progress("importing JAX and Keras")
    from tfdyno.runtime.train_jax.start import begin_alone, unused_gpus

    begin_alone(request.recipe.precision)
    _seed(request.recipe)
    return unused_gpus(request.seen_gpus)


def _seed(recipe: Recipe) -> None:
    """Draw the same numbers, those of tf.data included, which reads data for JAX as well."""
    import keras
    import tensorflow as tf

    if recipe.deterministic or recipe.seed is not None:
        keras.utils.set_random_seed(recipe.seed or 0)
        tf.random.set_seed(recipe.seed or 0)


def _applied(request: MeasureRun) -> list[str]:
    """Apply the recipe to TensorFlow; returns notes."""
    from tfdyno.runtime.recipe.apply import apply_recipe, check_recipe

    check_recipe(request.recipe, request.workload.mode)
    return apply_recipe(request.recipe)


def _software(request: MeasureRun) -> Software:
    if request.backend == "tensorflow":
        return software()
    from tfdyno.runtime.train_jax.start import software as on_jax

    return on_jax()


class _Bench:
    """One run: the clock, and what is read beside the steps."""

    def __init__(self, asked: MeasureRun, progress: child.Progress) -> None:
        from tfdyno.runtime.base.memory_counters import PeakMemory
        from tfdyno.runtime.base.reference_speed import synchronise
        from tfdyno.runtime.bench.fit import Plan
        from tfdyno.runtime.bench.loop import LoopBench

        protocol = asked.protocol
        by_epochs = bool(protocol.epochs or protocol.target_metric)
        clock = StepClock(
            least_samples=protocol.least_samples,
            most_s=protocol.most_s,
            least_s=protocol.least_s,
            endless=by_epochs,
            progress=progress,
        )
        self.plan: Plan = Plan(
            workload=asked.workload,
            recipe=asked.recipe,
            protocol=protocol,
            clock=clock,
            progress=progress,
            first_weights=asked.first_weights,
        )
        self.is_on_jax = asked.backend == "jax"
        self.clock, self.loop = clock, LoopBench(self.plan)
        self.first_step_at = 0.0
        self.memory = PeakMemory()
        if self.is_on_jax:
            from tfdyno.runtime.bench.on_jax import PeakOnJax

            self.memory = PeakOnJax()
        self.reference: ReferenceSpeed | None = None
        self.peak_bytes, self.memory_kind = 0, "process"
        clock.opening, clock.between = self._opening, self._between
        if not self.is_on_jax:  # there the steps themselves tell what is waited for
            clock.sync = synchronise

    def run(self, notes: list[str]) -> Outcome:
        """Load and measure; the peak is read before the model is let go."""
        from tfdyno.runtime.bench.load import run_workload
        from tfdyno.runtime.recipe.apply import settings_held
        from tfdyno.runtime.workload.workloads import policy_held

        plan = self.plan
        policy = plan.recipe.precision or plan.workload.precision
        with policy_held(policy, notes), settings_held(plan.recipe, notes), self._alone(notes):
            outcome = run_workload(plan, self.loop)
        self.peak_bytes, self.memory_kind = self.memory.read()
        return outcome

    def task(self, outcome: Outcome, notes: tuple[str, ...]) -> BenchTask:
        """Return what was measured, as the child found it."""
        from tfdyno.runtime.bench.task import task_of

        return task_of(outcome, self.plan, self.loop, notes)

    def _opening(self) -> None:
        self.first_step_at = time.perf_counter()
        self.memory.reset()

    def _between(self) -> None:
        """Build everything after the first step; nothing of this is timed."""
        from tfdyno.runtime.base import reference_speed
        from tfdyno.runtime.recipe.apply import verify

        if not self.is_on_jax:
            verify(self.plan.recipe)
        if self.memory.is_of_a_card:
            self.memory.reset()  # what XLA and cuDNN try while they compile is held by no step
        if self._is_on_cpu():
            self.reference = reference_speed.ReferenceSpeed()
            self.clock.beside = self.reference.measure
            self.clock.beside_every_s = reference_speed.EVERY_S
            self.clock.beside_ratio = reference_speed.SHARE_RATIO
        self.plan.progress("measuring")

    def _is_on_cpu(self) -> bool:
        if self.is_on_jax:
            from tfdyno.runtime.bench.on_jax import is_on_cpu

            return is_on_cpu()
        from tfdyno.runtime.base.reference_speed import is_needed

        return is_needed()

    def _alone(self, notes: list[str]) -> AbstractContextManager[None]:
        """Keep JAX on one device, whatever distribution the code sets."""
        if not self.is_on_jax:
            return contextlib.nullcontext()
        from tfdyno.runtime.bench.on_jax import kept_alone

        return kept_alone(notes)


def _run(
    bench: _Bench, outcome: Outcome, started: str, *, import_s: float, build_s: float
) -> BenchRun:
    timed = bench.clock.timed()
    has_speed = bool(bench.reference and not bench.reference.is_disturbed)
    return BenchRun(
        samples_s=timed.samples_s,
        steps_per_sample=timed.steps_per_sample,
        steady_from=timed.steady_from,
        excluded=timed.excluded,
        beside_s=timed.beside_s if has_speed else (),
        beside_places=timed.beside_places if has_speed else (),
        first_step_s=timed.first_step_s,
        import_s=import_s,
        build_s=build_s,
        peak_memory_bytes=bench.peak_bytes,
        memory_kind="allocator" if bench.memory_kind == "allocator" else "process",
        metrics=outcome.metrics,
        first=outcome.first.finish() if outcome.first else FirstResults(),
        seconds_to_target_s=outcome.seconds_to_target_s,
        started_at=started,
    )


def _lost(run: BenchRun, outcome: Outcome) -> tuple[str, ...]:
    """Say that training diverged: a loss that is no number makes the times of steps suspect."""
    from tfdyno.runtime.bench.task import loss_of

    loss = run.metrics.get("loss", loss_of(outcome))
    return ("The loss is not a number: training diverged.",) if math.isnan(loss) else ()


if __name__ == "__main__":
    child.leave(child.serve(handle, RUN))
