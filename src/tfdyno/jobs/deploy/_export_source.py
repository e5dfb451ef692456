"""What a user types for a model that is exported: a file, a folder, a function or a name."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.export import ModelKind
from tfdyno.core.train.training import MODEL
from tfdyno.jobs.deploy._export_place import digest
from tfdyno.probe.base.near import meant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.deploy.model_version import ModelVersion

FORMS = (
    "model.keras, a SavedModel folder, the folder of a tfdyno train run, file.py:function, or "
    "NAME[:V] of the model store"
)
_STORED: dict[str, ModelKind] = {"keras": "keras_file", "savedmodel": "savedmodel"}
"""Kinds of the store's versions that a model can be loaded from."""
_RUN, _SAVED = "run.json", "saved_model.pb"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSource:
    """A model, and where it lies."""

    reference: str
    """The model as typed; of the model store with the version that was meant."""
    kind: ModelKind
    path: str = ""
    """The file or folder; empty for a model by name."""

    @property
    def sha256(self) -> str:
        """The digest of the file or folder; empty where there is none."""
        place = Path(self.path or self.reference.partition(":")[0])
        return digest(place) if place.exists() else ""


def export_source(text: str) -> ExportSource:
    """Read a reference; raises ``UsageError`` with the nearest name where there is nothing."""
    path = Path(text)
    place, colon, name = text.partition(":")
    if place == "keras" and name:
        return ExportSource(reference=text, kind="application")
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise UsageError(f"there is no file {place}", remedy=meant(Path(place), cutoff=0.7))
        if not name:
            raise UsageError(f"{text} is a script", remedy=f"name its function: {text}:build_model")
        return ExportSource(reference=text, kind="function")
    if path.is_dir():
        return _of_folder(text, path)
    if text.endswith(".keras"):
        if not path.is_file():
            raise UsageError(f"there is no file {path}", remedy=meant(path, cutoff=0.7))
        return ExportSource(reference=text, kind="keras_file", path=text)
    if text.endswith((".h5", ".hdf5")):
        raise UsageError(f"{text} is in the old HDF5 format",
                         remedy="save the model again with model.save('name.keras')")  # fmt: skip
    if colon and name.isidentifier() and all(part.isidentifier() for part in place.split(".")):
        return ExportSource(reference=text, kind="function")
    return _of_store(text)


def stored_model(text: str, kinds: Sequence[str]) -> ModelVersion | None:
    """Return a version of the model store by ``NAME[:V]``; None: the store has no such name.

    Args:
        text: What was typed. Without a number it is the promoted version, else the newest.
        kinds: Of files that will do.

    Raises:
        TfdynoError: There is no such version, it is damaged, or of another kind.
    """
    from tfdyno.jobs.deploy.models import exact, model_store

    store = model_store()
    if text.partition(":")[0] not in store.names():
        return None
    found = store.find(*exact(store, text))
    if found.artefact.kind not in kinds:
        raise UsageError(f"{found.id} is kept as {found.artefact.kind}",
                         why=f"this takes {' or '.join(kinds)}",
                         remedy="name a version that was kept so")  # fmt: skip
    return found


def _of_store(text: str) -> ExportSource:
    if stored := stored_model(text, tuple(_STORED)):
        return ExportSource(reference=stored.id, kind=_STORED[stored.artefact.kind],
                            path=str(stored.path))  # fmt: skip
    near = meant(Path(text), cutoff=0.7) or _near_in_store(text.partition(":")[0])
    raise UsageError(f"'{text}' names no model", remedy=near or f"give {FORMS}")


def _near_in_store(name: str) -> str:
    from tfdyno.jobs.deploy.models import model_store

    near = difflib.get_close_matches(name, model_store().names(), n=1, cutoff=0.7)
    return f"did you mean {near[0]} of the model store?" if near else ""


def _of_folder(text: str, folder: Path) -> ExportSource:
    if (folder / _SAVED).is_file():
        return ExportSource(reference=text, kind="savedmodel", path=text)
    if (folder / _RUN).is_file():
        model = folder / MODEL
        if not model.is_file():
            raise UsageError(f"{folder} holds a run without its model", why=f"there is no {model}",
                             remedy="let it train to its end: tfdyno train --resume")  # fmt: skip
        return ExportSource(reference=text, kind="keras_file", path=str(model))
    versions = [
        one for one in folder.iterdir() if one.name.isdecimal() and (one / _SAVED).is_file()
    ]
    if versions:
        newest = max(versions, key=lambda one: int(one.name))
        return ExportSource(reference=text, kind="savedmodel", path=str(newest))
    raise UsageError(f"{folder} holds no model", why="it has no saved_model.pb and no run.json",
                     remedy=f"give {FORMS}")  # fmt: skip
