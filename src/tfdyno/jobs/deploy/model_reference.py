"""What a word on the command line stands for as a model to serve or to export, and its versions."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.deploy.model_version import ModelVersion

Kind = Literal["keras", "savedmodel", "versions", "function", "store"]
GRAPH_FILES = ("saved_model.pb", "saved_model.pbtxt")
SERVED_SUFFIXES = ("", ".keras")
_CODE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
"""``keras:ResNet50``, ``package.module:function``."""
_STORED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(:(?P<version>[0-9]+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A model and those of its versions that are there now."""

    name: str
    """The name in addresses, unless another is given."""
    versions: tuple[tuple[int, Path], ...]
    """Number and file or folder, ascending. Empty only for code that builds a model."""
    kind: Kind
    promoted: int | None = None
    """The version that the model store says is in use."""

    def path_of(self, version: int) -> Path:
        """Return file or folder of a version; raises ``UsageError`` where there is none."""
        found = dict(self.versions)
        if version not in found:
            known = ", ".join(str(number) for number in found)
            raise UsageError(f"{self.name} has no version {version}", remedy=f"there are {known}")
        return found[version]


def default_store() -> Path:
    """Return the model store's folder: ``$TFDYNO_STORE``, else ``models`` in the user's data."""
    from tfdyno.jobs.deploy.models import model_store

    return model_store().folder


def resolve(text: str, *, store: Path | None = None) -> ServedModel:
    """Return the model that a reference names, as it is now.

    Args:
        text: A ``.keras`` file, a SavedModel's folder, a folder with numbered SavedModels,
            ``NAME[:version]`` of the model store, or code that builds a model:
            ``file.py:function``, ``module:function``, ``keras:ResNet50``.
        store: Folder of the model store; None: the user's own.

    Raises:
        UsageError: It is none of these.
    """
    path = Path(text)
    if is_code(text):
        script, _, function = text.rpartition(":")
        file = Path(script or function)
        name = file.stem if file.suffix == ".py" else function
        return ServedModel(name=name, versions=(), kind="function")
    if path.is_file():
        return _of_file(path)
    if path.is_dir():
        return _of_folder(path)
    match = _STORED.fullmatch(text)
    if match and path.suffix != ".keras":
        return _of_store(match["name"], match["version"], store or default_store())
    raise UsageError(
        f"there is no model {text}",
        remedy="name a .keras file, a SavedModel folder, a folder with numbered SavedModels, or a "
        "model of the store (tfdyno models)",
    )


def is_code(text: str) -> bool:
    """Return whether a reference names code that builds a model."""
    script, _, function = text.rpartition(":")
    is_script = (script or function).endswith(".py")
    return not Path(text).is_dir() and bool(is_script or _CODE.fullmatch(text))


def exported_first(text: str, then: str) -> UsageError:
    """Return why code cannot be served, with the two commands that serve what it builds.

    Args:
        text: The code, as typed.
        then: The second command, up to the folder that the first one writes.
    """
    script, colon, function = text.rpartition(":")
    file = Path(script if colon else text)
    if file.suffix == ".py" and not file.is_file():
        return UsageError(f"there is no file {file}")
    code = text if colon else f"{text}:FUNCTION"
    folder = function if colon else file.stem
    if Path(folder).exists():
        folder = f"{folder}-served"
    return UsageError(
        f"{text} is code, and a server runs what was exported",
        remedy=f"type tfdyno export {shlex.quote(code)} --to savedmodel --output {folder}, "
        f"then {then} {folder}",
    )


def _of_file(path: Path) -> ServedModel:
    if path.suffix == ".keras":
        return ServedModel(name=path.stem, versions=((1, path),), kind="keras")
    if path.name in GRAPH_FILES:
        what = f"{path} is a part of a SavedModel"
        raise UsageError(what, remedy=f"name its folder, {path.parent}")
    raise UsageError(
        f"{path} is neither a .keras file nor a SavedModel",
        remedy="save the model with model.save('name.keras') or model.export('name')",
    )


def _of_folder(path: Path) -> ServedModel:
    name = path.resolve().name
    if _is_saved_model(path):
        version = int(name) if name.isdigit() else 1
        parent = path.resolve().parent.name
        shown = parent if name.isdigit() and parent else name
        return ServedModel(name=shown, versions=((version, path),), kind="savedmodel")
    numbered = sorted(
        (int(one.name), one)
        for one in path.iterdir()
        if one.name.isascii() and one.name.isdigit() and (_is_saved_model(one))
    )
    if numbered:
        return ServedModel(name=name, versions=tuple(numbered), kind="versions")
    if (path / "config.json").is_file() and any(path.glob("*.safetensors")):
        raise UsageError(
            f"{path} is a folder of Hugging Face",
            why="a server of text runs such a model",
            remedy=f"type tfdyno serve {shlex.quote(str(path))} --render vllm --card NAME "
            "--output DIR",
        )
    raise UsageError(
        f"{path} holds no SavedModel",
        why=f"there is no {GRAPH_FILES[0]} in it, nor in a folder 1, 2, … below",
        remedy="export the model with model.export(folder)",
    )


def _is_saved_model(folder: Path) -> bool:
    return any((folder / name).is_file() for name in GRAPH_FILES)


def _of_store(name: str, version: str | None, folder: Path) -> ServedModel:
    from tfdyno.store.model_store import ModelStore

    store = ModelStore(folder)
    every: Sequence[ModelVersion] = store.versions(name)
    promoted = store.promoted(name)
    wanted = [one for one in every if version is None or one.version == int(version)]
    if not wanted:
        store.version(name, int(version or 0))  # says which there are
    return ServedModel(
        name=name,
        versions=tuple((one.version, one.path) for one in wanted),
        kind="store",
        promoted=int(version) if version else promoted,
    )


def check_stored(model: ServedModel, version: int, *, store: Path | None = None) -> None:
    """Compare the files of a version with their digests, which reads all of them.

    A model that is not from the store has none.

    Raises:
        TfdynoError: The version is gone, or a file of it is missing or damaged.
    """
    if model.kind == "store":
        from tfdyno.store.model_store import ModelStore

        ModelStore(store or default_store()).find(model.name, version)


def is_servable(path: Path) -> bool:
    """Return whether TensorFlow can load it: a SavedModel's folder or a ``.keras`` file."""
    return path.suffix in SERVED_SUFFIXES or path.is_dir()


def fingerprint(path: Path) -> str:
    """Return what changes when a file or a folder of a model does: names, sizes and times.

    Empty when it cannot be read now, for example while it is replaced.
    """
    try:
        if path.is_file():
            return _mark(path)
        parts = [
            _mark(Path(folder) / name)
            for folder, _folders, names in sorted(os.walk(path))
            for name in sorted(names)
        ]
    except OSError:
        return ""
    return "|".join(parts)


def _mark(path: Path) -> str:
    found = path.stat()
    return f"{path} {found.st_size} {found.st_mtime_ns} {found.st_ino}"
