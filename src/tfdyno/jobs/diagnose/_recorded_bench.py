"""What a bench recorded, as facts of its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.measure.step_facts import StepFacts, TimelineFacts
from tfdyno.core.recipe.retreat import told_of
from tfdyno.jobs.diagnose._recorded import card_facts, growth_facts, host_facts, long_firsts
from tfdyno.model.measure.instability import instabilities
from tfdyno.model.measure.statistics import median
from tfdyno.model.measure.steady_part import judged_runs, run_medians_s, steady_points
from tfdyno.words.base.amounts import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.measurement import BenchRun, Measurement

LEFT_OUT = (
    "A bench runs the steps alone: callbacks, validation and checkpoints of the script are not in "
    "it, nor was recorded what a step waits for, what it computes and what is traced again."
)


def bench_facts(one: Measurement) -> StepFacts:
    """Return the steady steps of its runs, and what the machine did meanwhile."""
    runs, task = judged_runs(one), one.task
    parts = [(run.telemetry, steady_points(run)) for run in runs]
    steps_per_epoch = -(-task.samples_per_epoch // max(1, task.samples_per_step))
    step_s = median(run_medians_s(runs))
    later = [
        (told, [at for at in points if told.at_s[at] > _began_s(run) + steps_per_epoch * step_s])
        for run, (told, points) in zip(runs, parts, strict=True)
    ]
    return StepFacts(
        title=task.title,
        device=one.environment.device,
        source="record",
        batch_size=task.batch_size,
        replica_count=task.replica_count,
        precision=task.policy,
        execution=task.execution,
        parameter_bytes=4 * task.parameter_count,
        steps_per_epoch=steps_per_epoch,
        steps_seen=sum(run.steps_per_sample[at] for run in runs for at in run.steady_places),
        step_s=tuple(sample for run in runs for sample in run.steady_s),
        growth=growth_facts(later if steps_per_epoch else [], step_s),
        host=host_facts(parts, one.environment),
        timeline=_timeline(runs),
        cards=card_facts(parts, one.environment),
        retreats=task.retreats,
        notes=tuple(_notes(one, runs)),
    )


def _notes(one: Measurement, runs: Sequence[BenchRun]) -> list[str]:
    count = plural(len(runs), "run")
    return [
        f"This is what tfdyno bench recorded on {one.created_at[:10]}: {count} in fresh processes.",
        *filter(None, [told_of(one.task.retreats)]),
        *(each.text for each in instabilities(one)),
        LEFT_OUT,
    ]


def _began_s(run: BenchRun) -> float:
    return run.import_s + run.build_s + run.first_step_s


def _timeline(runs: Sequence[BenchRun]) -> TimelineFacts:
    """Return the run in the middle, without its warm-up."""
    medians_s = run_medians_s(runs)
    at = sorted(range(len(runs)), key=medians_s.__getitem__)[(len(runs) - 1) // 2]
    run = runs[at]
    start = min(run.steady_places, default=0)
    return TimelineFacts(
        whole_s=run.samples_s[start:],
        steps_each=run.steps_per_sample[start:],
        stalls=long_firsts(
            run.samples_s[start:],
            run.steps_per_sample[start:],
            [place - start for place in run.excluded],
        ),
        what=f"run {at + 1} of {len(runs)}, the one in the middle" if len(runs) > 1 else "",
    )
