"""A conversion that runs, read from its lines of progress and put in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tfdyno.core.base.units import HOUR_S, format_bytes
from tfdyno.words.base.amounts import short_hours

LEAST_S = 1.0
"""So much must be past before a rate is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertEvent:
    """How much is written at one moment."""

    shard: int
    """That is being written, counted from 1."""
    of_shards: int
    records: int
    of_records: int
    written_bytes: int


def read_event(line: str) -> ConvertEvent | None:
    """Return the event in a line of progress; None where the line is the name of a stage."""
    if not line.startswith("{"):
        return None
    try:
        raw: dict[str, Any] = json.loads(line)
        return ConvertEvent(
            shard=int(raw["shard"]),
            of_shards=int(raw["of_shards"]),
            records=int(raw["records"]),
            of_records=int(raw["of_records"]),
            written_bytes=int(raw["bytes"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def place_words(event: ConvertEvent) -> str:
    """Write ``shard 3 of 16``."""
    return f"shard {event.shard} of {event.of_shards}"


def pace_words(event: ConvertEvent, past_s: float) -> str:
    """Write ``1,200 of 50,000  84.0 MiB/s  ETA 2.1 min``; no pace where too little time is past.

    Args:
        event: How much is written.
        past_s: Seconds since nothing was.
    """
    parts = [f"{event.records:,} of {event.of_records:,}"]
    if past_s >= LEAST_S and event.records:
        parts.append(f"{format_bytes(event.written_bytes / past_s)}/s")
        left_s = (event.of_records - event.records) / (event.records / past_s)
        parts.append(f"ETA {short_hours(left_s / HOUR_S)}" if left_s >= 1 else "")
    return "  ".join(filter(None, parts))
