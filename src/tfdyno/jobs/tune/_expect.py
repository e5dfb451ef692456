"""What is expected of a trial before it runs: of a card the estimate, else lines through trials."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.hardware import Gpu
from tfdyno.core.choose.workload import Workload
from tfdyno.core.measure.software import Backend
from tfdyno.core.train.tuning import Trial, TrialEstimate
from tfdyno.jobs.choose.backends import JAX
from tfdyno.jobs.choose.options import SUM_BYTES
from tfdyno.jobs.choose.predict import Predictor, StepSettings, predictor_for
from tfdyno.model.measure.trial_judge import arm_of
from tfdyno.model.measure.trial_law import Point, line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.recipe.recipe import Recipe


@dataclass(slots=True, kw_only=True)
class CardEstimates:
    """``tfdyno estimate`` for the recipes of a study on one card; each trace is made once."""

    workload: Workload
    backend: Backend = "tensorflow"
    """Of Keras, whose step is estimated."""
    gpu: Gpu
    limit_bytes: int = 0
    """The card's memory that a recipe may take; 0: what is usable."""
    batch_size: int = 0
    """The batch of the workload, where the trace does not have to find it."""
    progress: Callable[[str], None]
    notes: list[str] = field(default_factory=list)
    _made: dict[tuple[str, str], Predictor | None] = field(default_factory=dict)

    @property
    def usable_bytes(self) -> float:
        """Memory for a step."""
        usable = self.gpu.usable_memory_bytes
        return min(usable, self.limit_bytes) if self.limit_bytes else usable

    def own(self, start: Recipe) -> Predictor:
        """Return the predictor of the starting recipe.

        Raises:
            TfdynoError: The workload cannot be traced, on JAX by JAX itself.
        """
        return self._predictor(start)

    def of(self, recipe: Recipe, batch_size: int, replicas: int = 1) -> TrialEstimate | None:
        """Return what the estimate says; None, and a note, where there is none.

        It knows nothing of the input and of several steps in one execution: both can only make the
        step as fast as it says, or slower by what it leaves out.
        """
        key = (recipe.precision, recipe.execution)
        if key not in self._made:
            try:
                self._made[key] = self._predictor(recipe)
            except TfdynoError as error:
                self._made[key] = None
                self.notes.append(f"No estimate in {recipe.precision or 'its precision'}: {error}")
        predictor = self._made[key]
        if predictor is None:
            return None
        try:
            found = predictor.estimate(self.gpu, replicas=replicas, batch_size=batch_size)
        except (TfdynoError, ValueError) as error:
            self.notes.append(f"No estimate for a batch of {batch_size:,}: {error}")
            return None
        if found.swept_by:
            self.notes.append(f"What is expected uses {found.swept_by}.")
        sums = SUM_BYTES * predictor.traced.trace.trainable_parameter_count
        return TrialEstimate(
            made_by="estimate",
            samples_per_s=_rate(found, recipe, batch_size * replicas),
            memory_bytes=found.device_memory_bytes.plus(sums if recipe.accumulation > 1 else 0.0),
            limit_bytes=self.usable_bytes,
        )

    def _predictor(self, recipe: Recipe) -> Predictor:
        execution = recipe.execution if recipe.execution != "auto" else ""
        found = predictor_for(
            on_backend(self.workload, self.backend),
            StepSettings(precision=recipe.precision, execution=execution),
            batch_size=recipe.batch_size or self.batch_size,
            progress=self.progress,
        )
        trace = found.traced.trace
        if self.backend == "jax" and trace.path == "tensorflow":
            raise UsageError("JAX's step cannot be traced", why=trace.path_reason.rstrip("."))
        return found


def on_backend(workload: Workload, backend: Backend) -> Workload:
    """Return the workload as it is traced for a backend of Keras."""
    return replace(workload, software=JAX) if backend == "jax" else workload


def _rate(found: Estimate, recipe: Recipe, samples: int) -> Interval:
    """Return a trial's rate, which runs ``fit``; steps in one call leave no time between them."""
    if found.fit_step_s is None or found.copy_s is None:
        return found.samples_per_s
    is_alone = recipe.steps_per_execution == 1
    fed = found.fit_step_s if is_alone else found.step_s.together(found.copy_s)
    return Interval(low=samples / fed.high, best=samples / fed.best, high=samples / fed.low)


def from_trials(
    recipe: Recipe,
    batch_size: int,
    trials: Sequence[Trial],
    *,
    replicas: int = 1,
    limit_bytes: float = 0.0,
    least_ratio: float,
) -> TrialEstimate | None:
    """Return what lines through the trials of a study say of another one; None: nothing.

    Args:
        recipe: Of the other one.
        batch_size: That it comes to, per replica.
        trials: Those that were measured to their end count.
        replicas: Of each.
        limit_bytes: Of memory; 0: not known.
        least_ratio: Spread from run to run.
    """
    known = [one for one in trials if one.is_judged and one.batch_size]
    arm = arm_of(recipe)
    times = [
        Point(arm=arm_of(one.recipe), batch_size=one.batch_size,
              value=one.batch_size * replicas / one.samples_per_s)
        for one in known
    ]  # fmt: skip
    step_s = line(times, arm, batch_size, least_ratio=least_ratio)
    peaks = [
        Point(arm=arm_of(one.recipe), batch_size=one.batch_size, value=one.peak_memory_bytes)
        for one in known
        if one.peak_memory_bytes
    ]
    memory = line(peaks, arm, batch_size, least_ratio=least_ratio)
    if step_s is None and memory is None:
        return None
    samples = batch_size * replicas
    rate = None
    if step_s is not None and step_s.low > 0:
        rate = Interval(low=samples / step_s.high, best=samples / step_s.best,
                        high=samples / step_s.low)  # fmt: skip
    return TrialEstimate(
        made_by="law", samples_per_s=rate, memory_bytes=memory, limit_bytes=limit_bytes
    )
