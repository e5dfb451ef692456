"""What a training writes while it is looked at goes into a folder beside, and away at the end.

Steps that are only timed must not write over the checkpoints and logs of a real training, nor may
a ``CheckpointManager`` delete older ones for them. The folder lies where the files would, so that
the disk is the same.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import shutil
import sys
import tempfile
import time
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.runtime.base.replaced import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tfdyno.core.base.untyped import Function, Instance, Value

PREFIX = ".tfdyno-look-"
_PATHS = {
    "ModelCheckpoint": "filepath", "BackupAndRestore": "backup_dir", "TensorBoard": "log_dir",
    "CSVLogger": "filename",
}  # fmt: skip
"""Callbacks of Keras that write by themselves, and the attribute that says where."""
_KERAS_MODULES = ("keras.saving", "keras.models", "keras._tf_keras.keras.saving",
                  "keras._tf_keras.keras.models")  # fmt: skip
"""Where ``save_model`` and ``save_weights`` stand, each under several names."""


class Aside:
    """Folders beside those that a training would write to."""

    def __init__(self) -> None:
        """Begin without a folder."""
        self.folders: dict[Path, Path] = {}
        self.told: Callable[[str, float], None] | None = None
        """Takes the name of each function that wrote, and its seconds."""

    def write(self, name: str, writing: Callable[[], Any]) -> Value:
        """Write, and tell of it; what writes by means of another is told once."""
        if self.told is None:
            return writing()
        told, self.told, began = self.told, None, time.perf_counter()
        try:
            return writing()
        finally:
            self.told = told
            told(name, time.perf_counter() - began)

    def path(self, wanted: str | os.PathLike[str]) -> str:
        """Return the same name in a folder beside; one for each folder that is wanted."""
        where = Path(wanted)
        if any(part.startswith(PREFIX) for part in where.parts):
            return str(where)  # it lies beside already
        parent = where.parent.absolute()
        if parent not in self.folders:
            self.folders[parent] = _folder(parent)
        return str(self.folders[parent] / where.name)

    def remove(self) -> None:
        """Delete all that was written."""
        for folder in self.folders.values():
            shutil.rmtree(folder, ignore_errors=True)


def _folder(parent: Path) -> Path:
    """Return a new folder in the nearest one that exists, or where temporary files go."""
    near = next(place for place in (parent, *parent.parents) if place.is_dir())
    try:
        return Path(tempfile.mkdtemp(prefix=PREFIX, dir=near))
    except OSError:  # not ours to write
        return Path(tempfile.mkdtemp(prefix=PREFIX))


@contextlib.contextmanager
def written_aside(callbacks: Sequence[Any] = ()) -> Iterator[Aside]:
    """Let these callbacks, and all that saves a model, write beside what they would.

    Caches and snapshots of a dataset are made beside too, where there is none yet: a look ends in
    the middle of an epoch, with half of it written.

    Args:
        callbacks: Of Keras.
    """
    import tensorflow as tf

    aside = Aside()
    for callback in callbacks:
        _redirect(callback, aside)
    data = tf.data.Dataset
    changed = [
        (owner, name, _told(title, _moved(getattr(owner, name), 1, aside.path), aside))
        for title, owner, name in _writers()
    ]
    changed += [(data, name, _moved(getattr(data, name), 1, _if_new(aside)))
                for name in ("cache", "snapshot")]  # fmt: skip
    logs = tf.summary.create_file_writer
    changed.append((tf.summary, "create_file_writer", _moved(logs, 0, aside.path)))
    manager = tf.train.CheckpointManager
    changed.append(
        (manager, "save", _told("CheckpointManager.save", _managed(manager.save, aside), aside))
    )
    try:
        with replaced(*changed):
            yield aside
    finally:
        aside.remove()


def _writers() -> Iterator[tuple[str, Any, str]]:
    """Yield what saves, in words, whose it is, and its name; its second argument says where."""
    import keras
    import tensorflow as tf

    yield from ((name, keras.Model, name) for name in ("save", "save_weights", "export"))
    for module in filter(None, map(sys.modules.get, _KERAS_MODULES)):
        yield from ((name, module, name) for name in ("save_model", "save_weights")
                    if hasattr(module, name))  # fmt: skip
    yield from ((f"Checkpoint.{name}", tf.train.Checkpoint, name) for name in ("save", "write"))
    yield "saved_model.save", tf.saved_model, "save"


def _redirect(callback: Value, aside: Aside) -> None:
    """Change the path of a callback of Keras, and all that it made of it."""
    import keras

    for name, attribute in _PATHS.items():
        kind = getattr(keras.callbacks, name)
        own = getattr(callback, attribute, None) if isinstance(callback, kind) else None
        if not isinstance(own, str | os.PathLike):
            continue
        old = os.fspath(own)
        new = aside.path(old)
        for other, value in list(vars(callback).items()):
            path = os.fspath(value) if isinstance(value, str | os.PathLike) else ""
            if path == old or path.startswith(os.path.join(old, "")):  # noqa: PTH118
                setattr(callback, other, new + path[len(old) :])


def _if_new(aside: Aside) -> Callable[[str | os.PathLike[str]], str]:
    """Return what gives a path beside, but for what is there already: that is read, and stays."""

    def path(wanted: str | os.PathLike[str]) -> str:
        is_there = any(Path(f"{os.fspath(wanted)}{end}").exists() for end in ("", ".index"))
        return os.fspath(wanted) if is_there or not os.fspath(wanted) else aside.path(wanted)

    return path


def _told(title: str, original: Function, aside: Aside) -> Value:
    @functools.wraps(original)
    def write(*given: Any, **named: Any) -> Value:
        return aside.write(title, lambda: original(*given, **named))

    return write


def _moved(original: Function, at: int, path: Callable[[Any], str]) -> Value:
    """Write under another name: that of the argument at this place, however it is given."""
    name = list(inspect.signature(original).parameters)[at]

    @functools.wraps(original)
    def write(*given: Any, **named: Any) -> Value:
        if len(given) > at and isinstance(given[at], str | os.PathLike):
            given = (*given[:at], path(given[at]), *given[at + 1 :])
        elif isinstance(named.get(name), str | os.PathLike):
            named[name] = path(named[name])
        return original(*given, **named)

    return write


def _managed(original: Function, aside: Aside) -> Value:
    """Let a ``CheckpointManager`` go on in another folder, with nothing there to delete."""

    @functools.wraps(original)
    def save(self: Instance, *given: Any, **named: Any) -> Value:
        folder = aside.path(self._directory)
        if folder != os.fspath(self._directory):
            prefix = Path(folder) / Path(self._checkpoint_prefix).name
            self._directory, self._checkpoint_prefix = folder, str(prefix)
            self._maybe_delete = OrderedDict()
        return original(self, *given, **named)

    return save
