"""What a training writes while it is looked at goes into a folder beside, and away at the end.

Steps that are only timed must not write over the checkpoints and logs of a real training. The
folder lies where the files would, so that the disk is the same.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PREFIX = ".tfdyno-look-"
_PATHS = {
    "ModelCheckpoint": "filepath", "BackupAndRestore": "backup_dir", "TensorBoard": "log_dir",
    "CSVLogger": "filename",
}  # fmt: skip
"""Callbacks of Keras that write by themselves, and the attribute that says where."""
_WRITERS = ("save", "save_weights", "export")


class Aside:
    """Folders beside those that a training would write to."""

    def __init__(self) -> None:
        """No folder yet."""
        self.folders: dict[Path, Path] = {}

    def path(self, wanted: str | os.PathLike[str]) -> str:
        """The same name in a folder beside; one for each folder that is wanted."""
        where = Path(wanted)
        parent = where.parent.absolute()
        if parent not in self.folders:
            self.folders[parent] = _folder(parent)
        return str(self.folders[parent] / where.name)

    def remove(self) -> None:
        """Delete all that was written."""
        for folder in self.folders.values():
            shutil.rmtree(folder, ignore_errors=True)


def _folder(parent: Path) -> Path:
    """A new folder in the nearest one that exists, or where temporary files go."""
    near = next(place for place in (parent, *parent.parents) if place.is_dir())
    try:
        return Path(tempfile.mkdtemp(prefix=PREFIX, dir=near))
    except OSError:  # not ours to write
        return Path(tempfile.mkdtemp(prefix=PREFIX))


@contextlib.contextmanager
def written_aside(callbacks: Sequence[Any]) -> Iterator[Aside]:
    """Let these callbacks, and every model that is saved, write beside what they would."""
    import keras

    aside, kind = Aside(), keras.Model
    for callback in callbacks:
        _redirect(callback, aside)
    originals = {name: getattr(kind, name) for name in _WRITERS}
    for name, original in originals.items():
        setattr(kind, name, _writer(original, aside))
    try:
        yield aside
    finally:
        for name, original in originals.items():
            setattr(kind, name, original)
        aside.remove()


def _redirect(callback: Any, aside: Aside) -> None:  # noqa: ANN401
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
            if isinstance(value, str | os.PathLike) and os.fspath(value).startswith(old):
                setattr(callback, other, new + os.fspath(value)[len(old) :])


def _writer(original: Any, aside: Aside) -> Any:  # noqa: ANN401
    """Save under another name: the first argument, or ``filepath``."""

    def write(self: Any, filepath: Any, *rest: Any, **named: Any) -> Any:  # noqa: ANN401
        folders = {str(folder) for folder in aside.folders.values()}
        is_aside = any(str(filepath).startswith(folder) for folder in folders)
        path = filepath if is_aside or not isinstance(filepath, str | os.PathLike) else None
        return original(self, path or aside.path(filepath), *rest, **named)

    return write
