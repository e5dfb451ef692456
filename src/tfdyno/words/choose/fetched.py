"""What was fetched of price lists, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.words.base.amounts import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MOST_NAMED = 12


def missing_note(failures: Sequence[tuple[str, str]]) -> str:
    """Return one sentence on providers without any prices; empty where all have some.

    Args:
        failures: Provider and why, of those of whom no list could be had.
    """
    if not failures:
        return ""
    causes: dict[str, list[str]] = {}
    for provider, why in failures:
        causes.setdefault(why, []).append(provider)
    told = "; ".join(f"{', '.join(names)} ({why})" for why, names in causes.items())
    return f"no prices of today of {plural(len(failures), 'provider')}: {told}"


def clock_note(off_days: float, date: str) -> str:
    """Return one sentence on a clock that is wrong; empty where it is not."""
    if not off_days:
        return ""
    side = "behind" if off_days > 0 else "ahead of"
    return (
        f"this machine's clock is {abs(off_days):,.0f} days {side} those of the price lists: the "
        f"prices are dated {date} by theirs; set the clock, for ages are counted by it"
    )


def unknown_note(unknown: Iterable[tuple[str, str, float, int]]) -> str:
    """Return one sentence on names that no card is known for; empty where there are none.

    Args:
        unknown: Provider, name, memory of one card in GB (0: not stated), and rows.
    """
    some = sorted(unknown, key=lambda one: -one[3])
    if not some:
        return ""
    named = [
        f"{name or 'a card without a name'}{f' {memory_gb:g} GB' if memory_gb else ''} of "
        f"{provider} ({plural(rows, 'row')})"
        for provider, name, memory_gb, rows in some[:_MOST_NAMED]
    ]
    more = f", and {len(some) - _MOST_NAMED} more" if len(some) > _MOST_NAMED else ""
    return f"Left out, for no card of the catalogue is meant for sure: {', '.join(named)}{more}."
