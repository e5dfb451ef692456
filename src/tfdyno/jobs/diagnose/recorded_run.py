"""Say what holds a training back from what ``tfdyno train`` or ``tfdyno bench`` recorded of it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.recipe.composition import is_trainer_only
from tfdyno.core.recipe.recipe import Recipe, diff
from tfdyno.jobs.bench.measured_files import STORE, measurements_at
from tfdyno.jobs.choose.reference import option_words, script_words
from tfdyno.jobs.diagnose.diagnose import Examined
from tfdyno.jobs.diagnose.profile import is_profile
from tfdyno.rules import bottleneck
from tfdyno.store.run_folder import RUN_FILE, RunFolder

if TYPE_CHECKING:
    from tfdyno.core.measure.measurement import Environment
    from tfdyno.core.measure.step_facts import StepFacts

_SEED = "seed"
"""A run is never without; it says nothing about speed."""


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
    from tfdyno.jobs.diagnose._recorded_bench import bench_facts

    one, *others = measurements_at(reference)
    examined = _judged(bench_facts(one), one.environment)
    if others:
        note = "The file holds two sides: this is the first, without the change."
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
