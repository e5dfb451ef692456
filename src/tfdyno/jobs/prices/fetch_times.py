"""When each provider's prices were fetched last, in the user's data folder."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from tfdyno.catalog import offers
from tfdyno.core.base.codec import from_json, to_json, write_atomic
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def times_file() -> Path:
    """Return the file with the times."""
    return offers.data_dir() / "fetched.json"


def fetched_at() -> dict[str, datetime.datetime]:
    """Return the times by provider; a file that cannot be read holds none, and all is fetched."""
    try:
        found = from_json(times_file().read_bytes(), dict[str, datetime.datetime])
    except (OSError, UsageError):
        return {}
    return {name: at for name, at in found.items() if at.tzinfo}


def fresh(providers: Iterable[str], every_s: float) -> tuple[str, ...]:
    """Return those fetched within that time; a time to come is none, for one clock was wrong.

    Args:
        providers: Names.
        every_s: How old prices may be.
    """
    now, at = datetime.datetime.now(tz=datetime.UTC), fetched_at()
    return tuple(
        name for name in providers if name in at and 0 <= (now - at[name]).total_seconds() < every_s
    )


def record(providers: Iterable[str]) -> None:
    """Write down that these were fetched now; raises ``UsageError`` where it cannot be written."""
    now = datetime.datetime.now(tz=datetime.UTC).replace(microsecond=0)
    write_atomic(times_file(), to_json(fetched_at() | dict.fromkeys(providers, now), indent=2))
