"""The estimate of a step that was measured, and what keeps the two for later."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.recalibration import Anchor, Gap
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose._anchors import stored, subject_of
from tfdyno.jobs.choose.predict import StepSettings, predictor_for
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.model.measure.summary import summary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.choose.workload import Trace
    from tfdyno.core.measure.measurement import Measurement


def card_of(measurement: Measurement) -> str:
    """Return the slug of the one model of card that was measured on.

    Raises:
        UsageError: It was measured on a CPU, on a card that the catalogue lacks, or on several.
    """
    name = measurement.label or measurement.id
    if measurement.environment.device == "cpu":
        raise UsageError(
            f"{name} was measured on a CPU",
            why="estimates are of GPUs, so there is none to compare",
        )
    slugs = {card.slug for card in measurement.environment.cards}
    if len(slugs) != 1 or "" in slugs:
        cards = " + ".join(sorted({card.name for card in measurement.environment.cards}))
        raise UsageError(f"{name} was measured on {cards or 'an unknown card'}",
                         why="there is no estimate for that")  # fmt: skip
    return slugs.pop()


def gap(measurement: Measurement, *, progress: Callable[[str], None] = silent) -> Gap:
    """Estimate the measured step, on the quick route, and put the two side by side.

    Raises:
        UsageError: ``card_of`` refuses it, the workload cannot be traced any more, is another
            model by now, or ran in a way that is not estimated.
        ToolError: The trace failed.
    """
    task, recipe = measurement.task, measurement.recipe
    measured_s = summary(measurement).median_s
    card = card_of(measurement)
    precision = recipe.precision or task.policy
    if not recipe.precision and task.policy == "float32":
        precision = ""  # the workload's own: TF32 where the card has it
    if task.execution == "eager":
        raise UsageError(f"{task.title} ran eagerly", why="only xla and graph are estimated")
    predictor = predictor_for(
        parse_reference(task.reference, mode=task.mode, precision=precision),
        StepSettings(precision=precision, execution=task.execution),
        batch_size=task.batch_size,
        card_files=False,
        progress=progress,
    )
    _check_same(predictor.traced.trace, measurement)
    found = replace(predictor, anchors=()).estimate(find(card), replicas=task.replica_count)
    subject = subject_of(predictor.traced.trace, precision=precision, execution=task.execution)
    assert subject is not None  # not eager
    return Gap(
        estimated_s=found.step_s,
        anchor=Anchor(
            subject=subject,
            card=card,
            batch_size=task.batch_size,
            replica_count=task.replica_count,
            measured_s=measured_s,
            estimated_s=found.step_s.best,
            protocol_version=measurement.protocol.version,
            measurement_id=measurement.id,
            measured_on=measurement.created_at[:10],
        ),
    )


def gaps(
    measurements: Sequence[Measurement], *, kept: bool, progress: Callable[[str], None] = silent
) -> tuple[Gap | None, ...]:
    """Return the gap of each; None for those that were measured where nothing is estimated.

    Args:
        measurements: At least one.
        kept: Whether to store each gap, so that later estimates start from it.
        progress: Called with a line at every stage.

    Raises:
        UsageError: None of them can be estimated, or ``gap`` refuses one, or the folder of the
            user's data cannot be written.
        ToolError: A trace failed.
    """
    if not any(map(_estimable, measurements)):
        card_of(measurements[0])  # says why
    found = tuple(gap(one, progress=progress) if _estimable(one) else None for one in measurements)
    for one in filter(None, found if kept else ()):
        stored().add(one.anchor)
    return found


def _estimable(one: Measurement) -> bool:
    try:
        card_of(one)
    except UsageError:
        return False
    return True


def _check_same(trace: Trace, measurement: Measurement) -> None:
    """The reference may lead to another model today than when it was measured."""
    task = measurement.task
    if (trace.title, trace.parameter_count) != (task.title, task.parameter_count):
        raise UsageError(
            f"{task.reference} is now {trace.title} with {trace.parameter_count:,} parameters",
            why=f"measured was {task.title} with {task.parameter_count:,}",
            remedy="measure again",
        )
