"""A trial and what was measured of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.model.measure.steady_part import beside_s, steady_part
from tfdyno.model.measure.trial_law import middle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tfdyno.core.measure.measurement import Measurement
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.core.train.search_space import SearchSpace, Value
    from tfdyno.core.train.tuning import TrialEstimate
from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.composition import check_composition, refuse_trainer_settings
from tfdyno.core.recipe.retreat import told_of
from tfdyno.core.train.search_space import changes_of, recipe_at
from tfdyno.core.train.tuning import Trial
from tfdyno.jobs.tune._space import keeps_batch


def drafted(
    number: int,
    values: Mapping[str, Value],
    space: SearchSpace,
    start: Recipe,
    *,
    own_batch_size: int,
    replicas: int,
    update_samples: int,
    expected: Callable[[Recipe, int], TrialEstimate | None],
) -> Trial:
    """Return a trial before it is judged; ``failed`` where its settings do not go together.

    Args:
        number: Of the trial.
        values: Its place in the space.
        space: Whose first values are those of the start.
        start: The starting recipe.
        own_batch_size: Per replica, under the start; 0: not known.
        replicas: Of the start.
        update_samples: Of the start, over all replicas; 0: not known.
        expected: What is expected of a recipe at a batch.
    """
    ordered = {name: values[name] for name in space.choices}
    draft = Trial(number=number, recipe=start, values=ordered)
    try:
        recipe = recipe_at(values, space, start, update_samples=update_samples // replicas)
        check_composition(recipe)
        refuse_trainer_settings(recipe)
    except UsageError as error:
        return replace(draft, status="failed", reason=str(error))
    batch_size = recipe.batch_size or own_batch_size
    return replace(
        draft,
        recipe=recipe,
        changes=changes_of(recipe, start),
        batch_size=batch_size,
        changes_batch=not keeps_batch(recipe, batch_size * replicas, update_samples),
        estimate=expected(recipe, batch_size),
    )


def with_measured(trial: Trial, found: Measurement) -> Trial:
    """Return the trial with what was measured of it."""
    rates = rates_of(found)
    besides = tuple(filter(None, map(beside_s, found.runs)))
    return replace(
        trial,
        status="measured",
        ran=True,
        rates_per_s=rates,
        beside_s=besides if len(besides) == len(rates) else (),
        samples_per_s=middle(rates),
        batch_size=found.task.batch_size or trial.batch_size,
        peak_memory_bytes=max(run.peak_memory_bytes for run in found.runs),
        measurement=found.id,
        retreats=found.task.retreats,
    )


def as_it_ran(
    trial: Trial, trials: Sequence[Trial], start: Recipe, *, starts_in_graph: bool
) -> Trial:
    """Return the trial with the recipe that ran, where XLA failed to compile the one asked for.

    Args:
        trial: With what was measured of it.
        trials: All others; one of the same recipe makes it ``same``.
        start: The starting recipe, whose own trial keeps it.
        starts_in_graph: Whether that runs without XLA, whatever its setting is called.
    """
    recipe = trial.ran_as
    if recipe == trial.recipe or trial.recipe == start:
        return trial
    if starts_in_graph:
        recipe = replace(recipe, execution=start.execution)
    ran = replace(trial, recipe=recipe, changes=changes_of(recipe, start))
    twin = next((one for one in trials if recipe in (one.recipe, one.ran_as)), None)
    if twin is None or not twin.is_judged:
        return ran
    reason = f"{told_of(trial.retreats)} That is trial {twin.number}."
    return replace(ran, status="same", same_as=twin.number, reason=reason)


def rates_of(found: Measurement) -> tuple[float, ...]:
    """Return samples per second of each run, as the proof counts them: stalls are part of it."""
    samples = found.task.samples_per_step
    return tuple(samples / steady_part(run).trimmed_mean_s for run in found.runs)
