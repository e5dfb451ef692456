"""Read a converted data set again: whether each shard is what was written."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from typing import IO, TYPE_CHECKING

from tfdyno.core.deploy.dataset import DamagedShard, Verified
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.data._convert_source import fingerprint
from tfdyno.store.dataset_folder import DatasetFolder, fault

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tfdyno.core.deploy.dataset import Shard
_HEADER = struct.Struct("<QI")
"""Length of the record and its checksum, as TensorFlow's ``record_writer.h`` has them."""
_FOOTER_BYTES = 4
"""The checksum of the record."""


def verify(
    path: Path, *, source: Path | None = None, progress: Callable[[str], None] = silent
) -> Verified:
    """Compare bytes and records of every shard with the manifest.

    Args:
        path: The folder of the data set.
        source: What it was made of, to tell whether that has changed since; None: not looked at.
        progress: Called with a line at every stage.

    Raises:
        UsageError: There is no finished data set, no such source, or nothing in it to convert.
    """
    dataset = DatasetFolder(path).read()
    now = ""
    if source:
        progress(f"looking at {source}")
        now = fingerprint(source)
    damaged = []
    for place, shard in enumerate(dataset.shards, start=1):
        progress(f"checking shard {place} of {len(dataset.shards)}")
        if why := fault(path, shard) or _miscount(path, shard, dataset.settings.compression):
            damaged.append(DamagedShard(file=shard.file, why=why))
    return Verified(
        shards=len(dataset.shards),
        records=dataset.records,
        size_bytes=dataset.size_bytes,
        damaged=tuple(damaged),
        source_changed=now != dataset.source.sha256 if source else None,
    )


def _miscount(path: Path, shard: Shard, compression: str) -> str:
    try:
        found = record_count(path / shard.file, compression)
    except (OSError, ValueError) as error:
        return f"cannot be read: {error}"
    return "" if found == shard.records else f"has {found:,} records instead of {shard.records:,}"


def record_count(path: Path, compression: str) -> int:
    """Return how many whole records a file holds.

    Args:
        path: Of the file.
        compression: ``none`` or ``gzip``.

    Raises:
        ValueError: Its end is not that of a record, or it is not compressed as said.
        OSError: It cannot be read.
    """
    try:
        if compression == "none":
            with path.open("rb") as file:
                return _count(file, file.seek(0, os.SEEK_END))
        with gzip.open(path) as unpacked:
            return _count(unpacked, None)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(str(error)) from None


def _count(file: IO[bytes] | gzip.GzipFile, size_bytes: int | None) -> int:
    """Go from header to header; ``size_bytes`` where the end is known, else by reading on."""
    file.seek(0)
    count = 0
    while header := file.read(_HEADER.size):
        if len(header) < _HEADER.size:
            raise ValueError("it ends in the middle of a record")
        rest_bytes = _HEADER.unpack(header)[0] + _FOOTER_BYTES
        if size_bytes is None:
            whole = _skipped(file, rest_bytes)
        else:
            whole = file.seek(rest_bytes, os.SEEK_CUR) <= size_bytes
        if not whole:
            raise ValueError("it ends in the middle of a record")
        count += 1
    return count


def _skipped(file: IO[bytes] | gzip.GzipFile, count_bytes: int) -> bool:
    while count_bytes and (chunk := file.read(min(count_bytes, 2**20))):
        count_bytes -= len(chunk)
    return not count_bytes
