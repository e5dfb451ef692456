"""The time of now, as files and answers bear it."""

from __future__ import annotations

from datetime import UTC, date, datetime


def now() -> str:
    """Return this second in UTC: ``2026-11-27T10:00:00+00:00``."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def today() -> date:
    """Return the day in UTC."""
    return datetime.now(UTC).date()
