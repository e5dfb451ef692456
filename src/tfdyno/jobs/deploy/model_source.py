"""What a path is that is to be kept: the kind of file, whether it can be one, and its name."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tfdyno.core.base.errors import OSErrorsAs, UsageError
from tfdyno.core.deploy.model_version import ArtefactKind, checked_name
from tfdyno.core.train.training import MODEL
from tfdyno.store.run_folder import RunFolder

_KINDS: dict[str, ArtefactKind] = {
    ".keras": "keras",
    ".onnx": "onnx",
    ".tflite": "litert",
    ".engine": "tensorrt",
    ".plan": "tensorrt",
}
SAVED_MODEL = ("saved_model.pb", "saved_model.pbtxt")
"""One of them makes a folder a SavedModel."""
TFLITE_MARK = b"TFL3"
"""Bytes 4 to 7 of a flatbuffer of TensorFlow Lite: ``file_identifier`` of its schema."""
_UNTOLD = re.compile(r"\d+|model|saved_model|export")
"""Last parts of paths that name no model; the folder above does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """What is to be kept."""

    path: Path
    kind: ArtefactKind
    name: str
    """That the path gives it."""
    run: Path | None = None
    """Folder of the training run that the path was given as."""


def model_source(path: Path) -> ModelSource:
    """Look at a file, a SavedModel, or the folder of a run.

    Raises:
        UsageError: It is none of them, or damaged.
    """
    if not path.exists():
        raise UsageError(f"{path} does not exist")
    if RunFolder(path).holds_run:
        model = path / MODEL
        if not model.is_file():
            why = f"there is no {MODEL} in it, as it has not ended or was told to keep none"
            raise UsageError(f"the run {path} left no model", why=why)
        return ModelSource(path=model, kind="keras", name=_name(path), run=path)
    kind = _folder_kind(path) if path.is_dir() else _file_kind(path)
    return ModelSource(path=path, kind=kind, name=_name(path))


def _folder_kind(path: Path) -> ArtefactKind:
    if _is_saved_model(path):
        return "savedmodel"
    versions = [one for one in path.iterdir() if _is_saved_model(one)]
    if versions:
        newest = max(versions, key=lambda one: (len(one.name), one.name))
        remedy = f"name one of them, as {newest}"
        raise UsageError(f"{path} holds {len(versions)} SavedModels", remedy=remedy)
    found = sorted(one for one in path.iterdir() if one.suffix in _KINDS)
    remedy = f"name the file in it, as {found[0]}" if found else ""
    raise UsageError(f"{path} is no SavedModel", why=f"there is no {SAVED_MODEL[0]} in it",
                     remedy=remedy)  # fmt: skip


def _is_saved_model(path: Path) -> bool:
    return any((path / name).is_file() for name in SAVED_MODEL)


def _file_kind(path: Path) -> ArtefactKind:
    if path.name in SAVED_MODEL:
        raise UsageError(f"{path} is a part of a SavedModel", remedy=f"name {path.parent}")
    kind = _KINDS.get(path.suffix.lower())
    if kind is None:
        known = ", ".join(_KINDS)
        raise UsageError(f"{path} is no model that the store knows",
                         why=f"it takes {known}, and the folder of a SavedModel")  # fmt: skip
    if why := _damage(path, kind):
        raise UsageError(f"{path} is no whole {path.suffix} file", why=why)
    return kind


def _damage(path: Path, kind: ArtefactKind) -> str:
    """Return why a file cannot be what its ending says; empty: nothing speaks against it."""
    with OSErrorsAs(UsageError, f"cannot read {path}"):
        with path.open("rb") as file:
            head = file.read(8)
        if not head:
            return "it is empty"
        if kind == "keras":
            return _keras_damage(path)
    if kind == "litert" and head[4:8] != TFLITE_MARK:
        return f"it does not have {TFLITE_MARK.decode()} where such files have it"
    return ""


def _keras_damage(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            return "" if "config.json" in archive.namelist() else "it has no config.json"
    except zipfile.BadZipFile as error:
        return str(error).lower()


def _name(path: Path) -> str:
    """Return the last part of the path that says something, without its ending."""
    whole = path.resolve()
    for one in (whole, *whole.parents):
        name = one.stem if one.suffix.lower() in _KINDS else one.name
        if name and not _UNTOLD.fullmatch(name):
            return checked_name(name)
    return checked_name(whole.stem)
