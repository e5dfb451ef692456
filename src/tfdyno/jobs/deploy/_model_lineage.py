"""Where a model came from: its training run, what its export found, and what the user adds."""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins, to_json
from tfdyno.core.base.errors import OSErrorsAs, UsageError
from tfdyno.core.base.version import VERSION
from tfdyno.core.deploy.dataset import MANIFEST
from tfdyno.core.deploy.model_version import Lineage
from tfdyno.core.recipe.recipe import flat
from tfdyno.core.recipe.recipe_file import FILE_NAME
from tfdyno.core.train.training import MODEL
from tfdyno.jobs.deploy._export_place import digest, record_beside, record_of
from tfdyno.store.cache import sha256_of
from tfdyno.store.dataset_folder import DatasetFolder
from tfdyno.store.run_folder import HISTORY_FILE, RUN_FILE, RunFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tfdyno.store.run_folder import RunRecord

RECORD = "export.json"
"""What ``tfdyno export`` leaves: in the folder that it wrote, or with the file's name in front."""
_WEIGHTS = "model.weights.h5"
"""The file of the weights in a ``.keras`` file."""


def lineage_of(
    source: Path,
    *,
    run: Path | None,
    data: Path | None,
    estimate: Path | None,
    code: Sequence[Path],
    metrics: Mapping[str, float],
    parent: str,
    heard: Callable[[str], None],
) -> Lineage:
    """Return all that is known of where a model came from.

    Args:
        source: The model; the record of an export is looked for in it and beside it.
        run: Folder of the training run.
        data: File or folder that was learned from.
        estimate: What ``tfdyno estimate --json`` printed.
        code: Files whose digests are kept.
        metrics: In place of those of the run and the export.
        parent: ``NAME:V`` that it was made from.
        heard: Told what is being read.

    Raises:
        UsageError: Something that was named cannot be read, or the model is not of that run.
    """
    found = _of_run(run) if run else Lineage()
    verification = _verification(source)
    if run:
        found = replace(found, run_verified=_is_of_run(source, verification, run))
    if data:
        heard(f"reading {data}")
        found = replace(found, data=str(data), data_sha256=_fingerprint(data))
    origins = {"training": found.metrics, "export": _accuracy(verification), "given": metrics}
    return replace(
        found,
        metrics={name: value for one in origins.values() for name, value in one.items()},
        metric_origins={name: origin for origin, one in origins.items() for name in one},
        estimate=_object(estimate, "tfdyno estimate --json") if estimate else {},
        verification=verification,
        sources={**found.sources, **{str(one): _digest(one) for one in code}},
        parent=parent,
        tfdyno=VERSION,
    )


def _of_run(folder: Path) -> Lineage:
    if not RunFolder(folder).holds_run:
        raise UsageError(f"{folder} holds no training run", why=f"there is no {RUN_FILE} in it",
                         remedy="name a folder that tfdyno train --output made")  # fmt: skip
    record, recipe = RunFolder(folder).read()
    return Lineage(
        workload=record.workload.reference,
        run=str(folder.resolve()),
        run_status=record.status,
        seed=record.seed,
        recipe_id=recipe.id,
        recipe={name: to_builtins(value) for name, value in flat(recipe).items()},
        data=record.data,
        data_sha256=_code_digest(record, record.data),
        metrics=_last_values(folder, record),
        environment=to_builtins(record.environment) if record.environment else {},
        sources=_run_sources(folder, record),
    )


def _is_of_run(source: Path, verification: Mapping[str, Any], run: Path) -> bool:
    """Return whether a model is that of a run; ``False`` where nothing tells it.

    A ``.keras`` file and what was exported from one can be told by digests: equal files, or equal
    weights in them. Of a SavedModel, or an export of one or of a function, nothing is known.

    Raises:
        UsageError: It is another model.
    """
    model = run / MODEL
    if not model.is_file():
        return False
    origin: Mapping[str, Any] = verification.get("source") or {}
    if origin.get("kind") == "keras_file" and origin.get("sha256"):
        kept, known = Path(str(origin.get("reference", ""))), str(origin["sha256"])
        exported_from = kept / MODEL if kept.is_dir() else kept
        is_there = exported_from.is_file() and _digest(exported_from) == known
        if known == _digest(model) or (is_there and _same_weights(exported_from, model)):
            return True
        why = f"it was exported from {origin.get('reference')}, which is not {model}"
    elif source.suffix == model.suffix:
        if _digest(source) == _digest(model) or _same_weights(source, model):
            return True
        why = f"its weights are not those of {model}"
    else:
        return False
    raise UsageError(f"{source} is not of the run {run}", why=why,
                     remedy="name the run that it came from, or leave --run out")  # fmt: skip


def _same_weights(one: Path, other: Path) -> bool:
    """Return whether two ``.keras`` files hold equal weights: saved again, only dates differ."""
    return _weights_digest(one) == _weights_digest(other) != ""


def _weights_digest(path: Path) -> str:
    """Digest the weights in a ``.keras`` file, the optimizer's included; empty: it has none."""
    found = hashlib.sha256()
    try:
        with zipfile.ZipFile(path) as archive, archive.open(_WEIGHTS) as file:
            while part := file.read(1 << 20):
                found.update(part)
            return found.hexdigest()
    except (OSError, KeyError, zipfile.BadZipFile):
        return ""


def _last_values(folder: Path, record: RunRecord) -> dict[str, float]:
    """Return each metric as the last epoch left it; what is no number is left out."""
    history: Any = record.outcome.get("history")
    path = folder / HISTORY_FILE
    if not history and path.exists():
        history = _object(path, "tfdyno train")
    last = {name: values[-1] for name, values in (history or {}).items() if values}
    return {name: float(one) for name, one in last.items() if isinstance(one, int | float)}


def _run_sources(folder: Path, record: RunRecord) -> dict[str, str]:
    """Digest the run's own files, and the code as it was at the start."""
    own = (folder / name for name in (RUN_FILE, FILE_NAME, HISTORY_FILE))
    found = {one.name: sha256_of(one) for one in own if one.is_file()}
    code = record.workload.reference.partition(":")[0]
    return {code: record.source_sha256, **found} if record.source_sha256 else found


def _code_digest(record: RunRecord, data: str) -> str:
    """Digest the file that makes the data, where it is still there; else empty."""
    file = Path(record.folder) / data.partition(":")[0]
    return sha256_of(file) if data and file.is_file() else ""


def _verification(source: Path) -> dict[str, object]:
    """Return what the record of an export says of this very file; empty where it says nothing."""
    own = [source / RECORD, record_beside(source)]
    for path in (*own, source.parent / RECORD):
        if not path.is_file():
            continue
        record = record_of(_object(path, "tfdyno export"), source)
        artefacts: Any = record.get("artefacts") or []
        for one in artefacts:
            is_named = Path(str(one.get("path", ""))).name == source.name
            if is_named or (path in own and len(artefacts) == 1):
                return _checked(one, record, source, path)
    return {}


def _checked(
    one: dict[str, Any], record: dict[str, Any], source: Path, path: Path
) -> dict[str, object]:
    if one.get("sha256") not in ("", None, digest(source)):
        noun = "file" if source.is_file() else "folder"
        what = f"{source} is not the {noun} that {path.name} was written for"
        raise UsageError(what, why="its sha256 is another",
                         remedy="export it again, or take it to another folder")  # fmt: skip
    told: dict[str, object] = {
        key: record[key] for key in ("source", "gates", "created_at") if key in record
    }
    return {**one, **told}


def _accuracy(verification: Mapping[str, Any]) -> dict[str, float]:
    """Return the accuracy that the export was measured to have."""
    accuracy = (verification.get("verification") or {}).get("accuracy") or {}
    after = accuracy.get("after_ratio")
    return {"accuracy": float(after)} if isinstance(after, int | float) else {}


def _fingerprint(data: Path) -> str:
    """Digest the source if it is a converted data set, else every file's path and content."""
    if (data / MANIFEST).is_file():
        return DatasetFolder(data).read().source.sha256
    if data.is_dir():
        files = sorted(one for one in data.rglob("*") if one.is_file())
        plain = [(one.relative_to(data).as_posix(), _digest(one)) for one in files]
        return hashlib.sha256(to_json(plain)).hexdigest()
    return _digest(data)


def _digest(path: Path) -> str:
    with OSErrorsAs(UsageError, f"cannot read {path}"):
        return sha256_of(path)


def _object(path: Path, writer: str) -> dict[str, Any]:
    """Return a JSON file that holds an object."""
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}", why=error.strerror or str(error)) from None
    except ValueError as error:
        raise UsageError(f"{path} is not valid JSON", why=str(error)) from None
    if not isinstance(found, dict):
        raise UsageError(f"{path} is not what {writer} writes", why="it holds no object")
    return found
