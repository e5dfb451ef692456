"""One shard on the disk: whole or not there, with its line in the journal."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING

import tensorflow as tf

from tfdyno.core.base.errors import ToolError
from tfdyno.core.deploy.dataset import PART, Shard, Skipped, Written
from tfdyno.runtime.checkpoint.writing import REMEDIES, sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_OPTIONS = {"none": "", "gzip": "GZIP"}


def write_shard(
    path: Path,
    records: Iterator[bytes],
    *,
    compression: str,
    journal: Path,
    skipped: Sequence[Skipped],
) -> None:
    """Write records under another name, rename the file when it is on the disk, then note it.

    Args:
        path: Of the shard.
        records: What it holds.
        compression: ``none`` or ``gzip``.
        journal: File that a line is added to.
        skipped: What was left out; read when all records are.

    Raises:
        ToolError: There is no room, or the folder cannot be written.
    """
    part = path.with_name(path.name + PART)
    count = 0
    try:
        with tf.io.TFRecordWriter(str(part), _OPTIONS[compression]) as writer:
            for record in records:
                writer.write(record)
                count += 1
        sha256 = _on_disk(part)
        shard = Shard(file=path.name, records=count, size_bytes=part.stat().st_size, sha256=sha256)
        part.replace(path)
        sync_folder(path.parent)
        _note(journal, Written(shard=shard, skipped=tuple(skipped)))
    except (OSError, tf.errors.OpError) as error:
        part.unlink(missing_ok=True)
        raise _refusal(path, error) from None
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _on_disk(path: Path) -> str:
    """See to it that a file is on the disk; returns its SHA-256."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


def _note(journal: Path, written: Written) -> None:
    """Add a line to the journal, and see to it that it is on the disk."""
    with journal.open("ab", buffering=0) as file:
        file.write(json.dumps(asdict(written)).encode() + b"\n")
        os.fsync(file.fileno())


def _refusal(path: Path, error: OSError | tf.errors.OpError) -> ToolError:
    if isinstance(error, OSError):
        why = error.strerror or str(error)
    else:
        why = error.message.rpartition("; ")[2]  # of "path; No space left on device"
    known = {os.strerror(number): remedy for number, remedy in REMEDIES.items()}
    remedy = known.get(why, "make the folder writable again")
    return ToolError(f"cannot write {path}", why=why,
                     remedy=f"{remedy}, then give the same command again")  # fmt: skip
