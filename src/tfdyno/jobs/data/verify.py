"""Read a converted data set again: whether each shard is what was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.deploy.dataset import DamagedShard, Verified
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.data._convert_source import fingerprint
from tfdyno.store.dataset_folder import DatasetFolder, fault
from tfdyno.store.record_count import record_count

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tfdyno.core.deploy.dataset import Shard


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
