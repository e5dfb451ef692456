"""Count the records of a TFRecord file without TensorFlow."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_HEADER = struct.Struct("<QI")
"""Length of the record and its checksum, as TensorFlow's ``record_writer.h`` has them."""
_FOOTER_BYTES = 4
"""The checksum of the record."""


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
