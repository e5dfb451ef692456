"""The images of a folder with one folder per class, in Keras' order and with Keras' labels.

``keras.utils.image_dataset_from_directory`` takes every folder below the source as a class, by
name, and every file below it whose name ends as an image's; links to folders are followed for a
class and not below it.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORMATS = (".bmp", ".gif", ".jpeg", ".jpg", ".png")
"""Keras 3.15, ``image_dataset_utils.ALLOWLIST_FORMATS``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFile:
    """One image."""

    path: str
    """The path below the source."""
    label: int
    size_bytes: int
    modified_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFolder:
    """All images of a folder."""

    files: tuple[ImageFile, ...]
    classes: tuple[str, ...]
    other_files: int
    """Files below the source that are no image by their name, or are in no class."""

    @property
    def size_bytes(self) -> int:
        """The bytes of all images."""
        return sum(one.size_bytes for one in self.files)

    @property
    def empty_classes(self) -> tuple[str, ...]:
        """Classes without an image; they keep their place, as in Keras."""
        seen = {one.label for one in self.files}
        return tuple(name for label, name in enumerate(self.classes) if label not in seen)

    @property
    def sha256(self) -> str:
        """The digest of names, sizes and times of change of all images, and of the classes."""
        digest = hashlib.sha256("\0".join(self.classes).encode())
        for one in self.files:
            digest.update(os.fsencode(one.path))
            digest.update(f"\0{one.label}\0{one.size_bytes}\0{one.modified_ns}\n".encode())
        return digest.hexdigest()


def image_folder(folder: Path) -> ImageFolder:
    """List the images of a folder.

    Raises:
        UsageError: There is none, or a part of the folder cannot be read.
    """
    try:
        below = sorted(os.listdir(folder))  # noqa: PTH208  (Keras sorts names, not paths)
        classes = [name for name in below if (folder / name).is_dir() and name[0] != "."]
        files: list[ImageFile] = []
        others = sum((folder / name).is_file() for name in below)
        for label, name in enumerate(classes):
            for path in _files(folder / name):
                if path.lower().endswith(FORMATS):
                    files.append(_image(folder, os.path.relpath(path, folder), label))
                else:
                    others += 1
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"cannot read {error.filename or folder}", why=why) from None
    _check(folder, files, classes)
    return ImageFolder(files=tuple(files), classes=tuple(classes), other_files=others)


def _files(folder: Path) -> Iterator[str]:
    """List every file below a class, as Keras sorts them."""

    def fail(error: OSError) -> None:
        raise error

    for root, _, names in sorted(os.walk(folder, onerror=fail), key=lambda one: one[0]):
        for name in sorted(names):
            yield os.path.join(root, name)  # noqa: PTH118  (a million of them)


def _image(folder: Path, path: str, label: int) -> ImageFile:
    """Read one image; a dead link is one that cannot be read, as a damaged image is."""
    try:
        found = (folder / path).stat()
    except OSError:
        return ImageFile(path=path, label=label, size_bytes=0, modified_ns=0)
    return ImageFile(
        path=path, label=label, size_bytes=found.st_size, modified_ns=found.st_mtime_ns
    )


def _check(folder: Path, files: list[ImageFile], classes: list[str]) -> None:
    """Refuse a folder without images, saying what is in it instead."""
    odd = next((name for name in classes if not _is_text(name)), None)
    if odd is not None:
        shown = os.fsencode(odd).decode(errors="backslashreplace")
        raise UsageError(f"the name of the class {shown} is no UTF-8 text", remedy="rename it")
    if files:
        return
    here = sorted(path.name for path in folder.iterdir() if path.is_file())
    if any(name.lower().endswith(FORMATS) for name in here):
        raise UsageError(
            f"the images in {folder} are in no class",
            remedy="put them into one folder per class, and that folder's parent here",
        )
    tables = [name for name in here if name.lower().endswith((".csv", ".tsv"))]
    if tables:
        remedy = f"did you mean {folder / tables[0]}?"
        raise UsageError(f"{folder} has no images in folders of classes", remedy=remedy)
    why = "none of its folders has one" if classes else "it has no folders"
    raise UsageError(f"{folder} has no images ({', '.join(FORMATS)})", why=why,
                     remedy="give the folder that has one folder per class")  # fmt: skip


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
