"""What is to be converted, looked through before TensorFlow starts."""

from __future__ import annotations

import os
from array import array
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.dataset import Feature, Kind, Skipped, Source
from tfdyno.core.messages.data import ShardPlan
from tfdyno.model.time.shards import shuffle
from tfdyno.probe.base.near import no_such
from tfdyno.probe.files.csv_file import csv_file, csv_sha256
from tfdyno.probe.files.image_folder import ImageFile, ImageFolder, image_folder
from tfdyno.words.base.amounts import listed, plural

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TABLES = (".csv", ".tsv", ".txt")
CHANNELS = 3
_RECORD_BYTES = 64
"""Bytes of a record of an image beside the image and its path: names, label, length and checksums.
"""
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A source in the order of its records."""

    kind: Kind
    source: Source
    records: int
    converted_bytes: int
    """Bytes without compression."""
    is_exact: bool
    """Whether ``converted_bytes`` is more than a guess."""
    features: tuple[Feature, ...]
    classes: tuple[str, ...]
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    images: tuple[ImageFile, ...] = ()
    offsets: array[int] | None = None
    """The offsets of the rows of a CSV."""

    def shuffled(self, seed: int | None) -> Listed:
        """Return the same in an order that the seed decides; None: as it is."""
        if self.offsets is not None:
            offsets = array(self.offsets.typecode, self.offsets)
            shuffle(offsets, seed)
            return replace(self, offsets=offsets)
        images = list(self.images)
        shuffle(images, seed)
        return replace(self, images=tuple(images))

    def shard(self, file: str, first: int, end: int) -> ShardPlan:
        """Tell the child of a shard of the records from ``first`` to before ``end``."""
        images = ((one.path, one.label, one.size_bytes) for one in self.images[first:end])
        return ShardPlan(file=file, images=tuple(images), rows=(first, end))


def kind_of(path: Path) -> Kind:
    """Tell what a source is by its looks; raises ``UsageError`` where it is neither, or gone."""
    if path.is_dir():
        return "images"
    if not path.exists():
        raise no_such(path, what="file or folder")
    if path.suffix.lower() in TABLES:
        return "csv"
    raise UsageError(
        f"{path} is neither a folder of images nor a CSV file ({', '.join(TABLES)})",
        remedy="unpack or export it first",
    )


def fingerprint(path: Path) -> str:
    """Return what ``Source.sha256`` of it is now; nothing of it is read but names, sizes and times.

    Raises:
        UsageError: It is not there, or there is nothing to convert.
    """
    return csv_sha256(path) if kind_of(path) == "csv" else image_folder(path).sha256


def look(
    path: Path,
    *,
    image_size: tuple[int, int] | None,
    label: str,
    delimiter: str,
    skip_bad: bool,
    progress: Callable[[str], None],
) -> Listed:
    """List a folder of images, or read a CSV file through.

    Args:
        path: The source.
        image_size: Height and width that images will have; None: they stay as they are.
        label: Column of a CSV.
        delimiter: Between fields of a CSV.
        skip_bad: Leave rows of a CSV out that do not fit.
        progress: Called with how far it is.

    Raises:
        UsageError: There is nothing to convert, or a row does not fit.
    """
    if kind_of(path) == "csv":
        return _csv(path, label, delimiter, skip_bad, progress)
    progress(f"listing {path}")
    found = image_folder(path)
    pixels_bytes = image_size and image_size[0] * image_size[1] * CHANNELS
    content_bytes = pixels_bytes * len(found.files) if pixels_bytes else found.size_bytes
    paths_bytes = sum(len(one.path) for one in found.files)
    return Listed(
        kind="images",
        source=Source(
            path=_shown(path), sha256=found.sha256, files=len(found.files),
            size_bytes=found.size_bytes,
        ),
        records=len(found.files),
        converted_bytes=content_bytes + paths_bytes + _RECORD_BYTES * len(found.files),
        is_exact=True,
        features=_image_features(image_size),
        classes=found.classes,
        notes=_image_notes(found),
        images=found.files,
    )  # fmt: skip


def _csv(
    path: Path, label: str, delimiter: str, skip_bad: bool, progress: Callable[[str], None]
) -> Listed:
    progress(f"looking through {path.name}")
    found = csv_file(path, label=label, delimiter=delimiter, skip_bad=skip_bad, progress=progress)
    return Listed(
        kind="csv",
        source=Source(path=_shown(path), sha256=found.sha256, files=1, size_bytes=found.size_bytes),
        records=found.records,
        converted_bytes=found.converted_bytes,
        is_exact=False,
        features=found.features,
        classes=found.classes,
        skipped=found.skipped,
        notes=found.notes,
        offsets=found.offsets,
    )


def _image_features(image_size: tuple[int, int] | None) -> tuple[Feature, ...]:
    image = Feature(name="image", dtype="string", role="image")
    if image_size:
        image = replace(image, role="pixels", shape=(*image_size, CHANNELS))
    return (
        image,
        Feature(name="label", dtype="int64", role="class"),
        Feature(name="path", dtype="string", role="path"),
    )


def _image_notes(found: ImageFolder) -> tuple[str, ...]:
    notes = []
    if found.other_files:
        files = plural(found.other_files, "file")
        notes.append(f"Keras takes {files} below the source for no image of a class, by name or "
                     "place, and so does this.")  # fmt: skip
    if empty := found.empty_classes:
        shown = [*empty[:_SHOWN], *(["others"] if len(empty) > _SHOWN else [])]
        have = "has" if len(shown) == 1 else "have"
        notes.append(f"{listed(shown)} {have} no image, and {have} a place among the classes "
                     "all the same, as in Keras.")  # fmt: skip
    return tuple(notes)


def _shown(path: Path) -> str:
    """Return a path as text that JSON can hold."""
    return os.fsencode(path).decode(errors="backslashreplace")
