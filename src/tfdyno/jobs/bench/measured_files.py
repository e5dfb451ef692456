"""Find the measurements that a person names: a JSON file, a folder of results, one in it."""

from __future__ import annotations

import dataclasses
import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import from_json
from tfdyno.core.base.errors import OSErrorsAs, UsageError
from tfdyno.core.measure.load import LOAD_FORMAT
from tfdyno.probe.base.near import meant

if TYPE_CHECKING:
    from tfdyno.core.measure.measurement import BenchRun, CardTelemetry, Measurement, Telemetry

STORE = "results.sqlite"
FORMS = "give a JSON file of tfdyno bench, a folder of results, or FOLDER:ID"


def measurements_at(place: str) -> tuple[Measurement, ...]:
    """Read the measurements at a place: one, or both sides that one bench wrote to a file.

    Args:
        place: A JSON file, a folder of results (its newest one), or ``folder:beginning of an id``.

    Raises:
        UsageError: There is nothing, it is no measurement, or it cannot be read.
    """
    path = Path(place)
    found: tuple[Measurement, ...]
    if place and path.is_dir():
        found = (_stored(path, ""),)
    elif place and path.name == STORE and path.exists():
        found = (_stored(path.parent, ""),)
    elif place and path.exists():
        found = _written(path)
    else:
        found = (_by_id(place),)
    for one in found:
        _check(one, place)
    return found


def _by_id(place: str) -> Measurement:
    folder, colon, prefix = place.rpartition(":")
    if colon and Path(folder).is_dir():
        return _stored(Path(folder), prefix)
    remedy = meant(Path(folder if colon else place), otherwise=FORMS)
    raise UsageError(f"there is no {place!r}", remedy=remedy)


def _stored(folder: Path, prefix: str) -> Measurement:
    from tfdyno.store.results import Results  # SQLite is of no use to JSON files

    return Results(folder=folder).measurement(prefix)


def _written(path: Path) -> tuple[Measurement, ...]:
    from tfdyno.core.measure.measurement_document import measurement_of

    with OSErrorsAs(UsageError, f"cannot read {path}"):
        data = path.read_bytes()
    raw = from_json(data, object, where=str(path))
    if isinstance(raw, dict):
        _check_kind(raw, path)
    sides = [raw, raw["against"]] if isinstance(raw, dict) and "against" in raw else [raw]
    return tuple(measurement_of(side, where=str(path)) for side in sides)


def _check_kind(raw: dict[str, Any], path: Path) -> None:
    """Refuse what another command of tfdyno wrote, by its name. Raises ``UsageError``."""
    remedy = "compare takes what tfdyno bench wrote of training steps"
    if str(raw.get("format", "")).startswith(LOAD_FORMAT.rpartition(" ")[0]):
        url = shlex.quote(str(raw.get("url") or "URL"))
        raise UsageError(
            f"{path} is a load test of a server",
            why=f"tfdyno bench --serve {url} --html PAGE measures one and shows it",
            remedy=remedy,
        )
    made = raw.get("artefacts", raw.get("formats"))
    if "gates" in raw and isinstance(made, list):
        file = next((one.get("path") for one in made if isinstance(one, dict)), None) or "MODEL"
        raise UsageError(
            f"{path} is the record of an export",
            why=f"tfdyno models add {shlex.quote(str(file))} keeps the model with it, and "
            "tfdyno models show NAME shows it",
            remedy=remedy,
        )


def _check(one: Measurement, place: str) -> None:
    """Refuse what arithmetic cannot take; a file may have been edited. Raises ``UsageError``."""
    if not one.runs:
        raise UsageError(f"{place} holds no run", remedy="measure again")
    if one.task.batch_size < 0 or one.task.replica_count < 1:
        raise UsageError(f"{place} has a wrong value", why="a batch or replicas below 1")
    for number, run in enumerate(one.runs, start=1):
        wrong = _wrong(run)
        if wrong:
            raise UsageError(f"{place} has a wrong value", why=f"{wrong} in run {number}")
    if not any(run.steady_s for run in one.runs):
        raise UsageError(f"{place} has no samples to compare", remedy="measure again")


def _wrong(run: BenchRun) -> str:
    count = len(run.samples_s)
    if not all(math.isfinite(sample) and sample > 0 for sample in run.samples_s):
        return "a sample is no time above 0 s"
    if len(run.steps_per_sample) != count or min(run.steps_per_sample, default=1) < 1:
        return "steps_per_sample does not go with the samples"
    if not 0 <= run.steady_from <= count:
        return "steady_from is no index of the samples"
    if _ragged(run.telemetry):
        return "the lists of the telemetry are not equally long"
    return ""


def _ragged(telemetry: Telemetry) -> bool:
    """Return whether a list of the telemetry is neither empty nor as long as that of the points."""
    nouns: tuple[Telemetry | CardTelemetry, ...] = (telemetry, *telemetry.cards)
    lists = [
        getattr(noun, field.name)
        for noun in nouns
        for field in dataclasses.fields(noun)
        if field.name != "cards"
    ]
    points = len(telemetry.at_s)
    return any(isinstance(one, tuple) and len(one) not in (0, points) for one in lists)
