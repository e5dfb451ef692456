"""How records are dealt to shards."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import MutableSequence

SHARD_BYTES = 128 * 2**20
"""Large enough to be read in one go from any disk or network, small enough to be dealt out."""
FEWEST = 8
"""So that several can be read at once and their order shuffled, also where all are small."""
MOST = 99_999
"""That names of five digits tell apart and keep in order."""


def shard_count(records: int, size_bytes: int, *, shard_bytes: int = 0) -> int:
    """Return the number of shards of about ``shard_bytes``, each of at least one record.

    Args:
        records: At least 1.
        size_bytes: Of all records together, also where it is only an estimate.
        shard_bytes: 0: ``SHARD_BYTES``, and no fewer shards than ``FEWEST``.
    """
    count = math.ceil(size_bytes / (shard_bytes or SHARD_BYTES))
    return max(1, min(records, count if shard_bytes else max(count, FEWEST)))


def shard_ranges(records: int, shards: int) -> list[tuple[int, int]]:
    """Return first record and the one after the last of each shard; counts differ by one at most.

    Raises:
        ValueError: There are fewer records than shards, or no shard.
    """
    if not 1 <= shards <= records:
        raise ValueError(f"need 1 to {records} shards, got {shards}")
    bounds = [records * place // shards for place in range(shards + 1)]
    return list(pairwise(bounds))


def shard_name(place: int, shards: int, compression: str) -> str:
    """Return ``data-00003-of-00016.tfrecord``, with ``.gz`` where it is compressed."""
    ending = ".gz" if compression == "gzip" else ""
    return f"data-{place:05}-of-{shards:05}.tfrecord{ending}"


def shuffle(items: MutableSequence[Any], seed: int | None) -> None:
    """Bring items in an order that a seed decides on every machine; None leaves them."""
    if seed is not None:
        random.Random(seed).shuffle(items)
