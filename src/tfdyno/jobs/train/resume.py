"""Whether the run in a folder is the one that is asked for."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.choose.workload import HUB_PREFIX, Workload
from tfdyno.core.recipe.recipe import Recipe, diff
from tfdyno.jobs.choose.reference import fine_tune_words
from tfdyno.probe.files.preset_folder import is_path
from tfdyno.store.cache import sha256_of
from tfdyno.words.base.language import ENGLISH, answering
from tfdyno.words.recipe.settings import value_words

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import HubModel
    from tfdyno.store.run_folder import RunRecord


def differences_from(
    record: RunRecord, recipe: Recipe, workload: Workload, *, given: Recipe | None, data: str
) -> list[str]:
    """Return what is asked for otherwise than the run of a folder has it, in English words.

    Args:
        record: Of the folder.
        recipe: Of the folder.
        workload: That is asked for.
        given: The recipe that is asked for; None: whatever the folder has.
        data: The function of the data that is asked for; empty: the same.
    """
    found = []
    for name in (one.name for one in fields(Workload)):
        there, here = getattr(record.workload, name), getattr(workload, name)
        if name == "reference":
            same = _located(there, record.folder) == _located(here, str(Path.cwd()))
        else:
            same = there == here or name == "python"
        if not same and name == "hub" and there and here and _is_same_model(there, here):
            found.append(f"it is trained by {_way(there)}, not by {_way(here)}")
        elif not same:
            found.append(f"its {name.replace('_', ' ')} is {_value(there)}, not {_value(here)}")
    if data and data != record.data:
        found.append(f"its data is {_value(record.data)}, not {data}")
    if given:
        given = replace(given, seed=recipe.seed if given.seed is None else given.seed)
        for name, (was, is_now) in diff(recipe, given).items():
            with answering(ENGLISH):  # as the error that tells it
                words = value_words(name, was), value_words(name, is_now)
            found.append(f"its {name} is {words[0]}, not {words[1]}")
    return found


def digest_of(workload: Workload) -> str:
    """Digest the workload's own file; empty where it has none."""
    place = Path(workload.reference.partition(":")[0])
    return sha256_of(place) if place.is_file() else ""


def _is_same_model(there: HubModel, here: HubModel) -> bool:
    return replace(there, fine_tune=here.fine_tune) == here


def _way(hub: HubModel) -> str:
    return " ".join(fine_tune_words(hub.fine_tune)) or "no option"


def _value(value: object) -> str:
    if isinstance(value, tuple):
        value = " ".join(map(str, value))
    return "empty" if value in ("", None) else str(value)


def _located(reference: str, folder: str) -> str:
    """Return a reference that does not depend on where the command was given."""
    place, colon, rest = reference.partition(":")
    if reference.startswith(HUB_PREFIX) and is_path(rest):
        return f"{place}{colon}{(Path(folder) / rest).resolve()}"
    if not place.endswith((".py", ".keras")):
        return reference
    return f"{(Path(folder) / place).resolve()}{colon}{rest}"
