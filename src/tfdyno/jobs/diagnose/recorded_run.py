"""Say what holds a training back from what ``tfdyno train`` or ``tfdyno bench`` recorded of it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.measure.step_facts import StepFacts, TimelineFacts
from tfdyno.core.recipe.composition import is_trainer_only
from tfdyno.core.recipe.recipe import Recipe, diff
from tfdyno.core.recipe.retreat import told_of
from tfdyno.jobs.bench.measured_files import STORE, measurements_at
from tfdyno.jobs.choose.reference import option_words, script_words
from tfdyno.jobs.diagnose._recorded import card_facts, growth_facts, host_facts, long_firsts
from tfdyno.jobs.diagnose.diagnose import Examined
from tfdyno.jobs.diagnose.profile import is_profile
from tfdyno.model.measure.instability import instabilities
from tfdyno.model.measure.statistics import median
from tfdyno.model.measure.steady_part import judged_runs, run_medians_s, steady_points
from tfdyno.rules import bottleneck
from tfdyno.store.run_folder import RUN_FILE, RunFolder
from tfdyno.words.base.amounts import plural
from tfdyno.words.base.language import say, say_later

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.measurement import BenchRun, Environment, Measurement

_SEED = "seed"
"""A run is never without; it says nothing about speed."""
LEFT_OUT = say_later(
    "A bench runs the steps alone: callbacks, validation and checkpoints of the script are not in "
    "it, nor was recorded what a step waits for, what it computes and what is traced again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What was recorded and what follows, and what to type to look at the steps themselves."""

    examined: Examined
    recipe: Recipe
    reference: str
    """The workload, from where the user stands."""
    arguments: tuple[str, ...] = ()
    settings: dict[str, object] = field(default_factory=dict)
    """The settings of the recipe that a look can have."""


def is_run(reference: str) -> bool:
    """Return whether what a user points at was written by ``tfdyno train`` or ``tfdyno bench``.

    A folder of a run, a folder of results or one result in it (``FOLDER:ID``), or a JSON file,
    one that is not there as well: nothing else is called so.
    """
    path, (folder, colon, _) = Path(reference), reference.rpartition(":")
    if path.is_dir():
        return (path / RUN_FILE).is_file() or (path / STORE).is_file()
    if path.is_file():
        return path.name == STORE or (path.suffix == ".json" and not is_profile(reference))
    return path.suffix == ".json" or (bool(colon) and (Path(folder) / STORE).is_file())


def examined_run(reference: str) -> Recorded:
    """Return what the record tells, through the same rules as a look at the steps.

    Raises:
        UsageError: It is damaged, holds no steps, or is of something else.
    """
    path = Path(reference)
    folder = path.parent if path.name == RUN_FILE else path
    if (folder / RUN_FILE).is_file():
        return _trained(folder, reference)
    return _measured(reference)


def _trained(folder: Path, reference: str) -> Recorded:
    from tfdyno.jobs.diagnose._recorded_train import train_facts

    record, recipe = RunFolder(folder).read()
    facts = train_facts(record, recipe, reference)
    workload = record.workload
    return Recorded(
        examined=_judged(facts, record.environment),
        recipe=recipe,
        reference=_from_here(workload.reference, Path(record.folder or ".")),
        arguments=(*option_words(workload), *script_words(workload)),
        settings=_settings(recipe),
    )


def _measured(reference: str) -> Recorded:
    one, *others = measurements_at(reference)
    examined = _judged(bench_facts(one), one.environment)
    if others:
        note = say("The file holds two sides: this is the first, without the change.")
        said = replace(examined.facts, notes=(*examined.facts.notes, note))
        examined = replace(examined, facts=said)
    return Recorded(
        examined=examined,
        recipe=one.recipe,
        reference=one.task.reference,
        settings=_settings(one.recipe),
    )


def _judged(facts: StepFacts, environment: Environment | None) -> Examined:
    return Examined(facts=facts, diagnosis=bottleneck.diagnose(facts), environment=environment)


def _settings(recipe: Recipe) -> dict[str, object]:
    changed = {name: new for name, (_, new) in diff(Recipe(), recipe).items()}
    return {
        name: value
        for name, value in changed.items()
        if name != _SEED and (name.startswith("input.") or not is_trainer_only(name))
    }


def _from_here(reference: str, folder: Path) -> str:
    """Return the same workload as it is typed where the user stands now."""
    name, colon, rest = reference.partition(":")
    file = folder / name
    if Path(name).is_absolute() or not file.is_file() or folder == Path.cwd():
        return reference
    return f"{os.path.relpath(file)}{colon}{rest}"


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
    return [
        say(
            "This is what tfdyno bench recorded on {date}: {runs} in fresh processes.",
            date=one.created_at[:10],
            runs=plural(len(runs), "run"),
        ),
        *filter(None, [told_of(one.task.retreats)]),
        *(each.text for each in instabilities(one)),
        say(LEFT_OUT),
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
        what=say("run {number} of {count}, the one in the middle", number=at + 1, count=len(runs))
        if len(runs) > 1
        else "",
    )
