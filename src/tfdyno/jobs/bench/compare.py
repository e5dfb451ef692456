"""Compare measurements with the first of them, and price each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.measurement import Comparison, Measurement, Summary
from tfdyno.jobs.bench.measured_files import measurements_at
from tfdyno.model.choose.price_performance import Priced, price_performance
from tfdyno.model.measure.comparison import compare
from tfdyno.model.measure.summary import summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.hardware import Offer

NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""What the measurements are called, in the order given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One measurement with what follows from it."""

    name: str
    """One letter."""
    place: str
    """Where it was read from."""
    measurement: Measurement
    summary: Summary
    comparison: Comparison | None
    """The comparison with the first; None: it is the first."""
    priced: Priced


def compare_all(places: Sequence[str], *, least: int = 2) -> tuple[Side, ...]:
    """Compare every measurement with the first.

    Args:
        places: JSON files, folders, or ``folder:id``, as ``measurements_at`` reads them. One is
            enough where it holds two sides.
        least: Fewer measurements are refused.

    Raises:
        UsageError: A place holds no measurement, or there are too few of them or too many.
    """
    found = [(place, one) for place in places for one in measurements_at(place)]
    if len(found) < least:
        raise UsageError("there is nothing to compare with", remedy="name two measurements or more")
    if len(found) > len(NAMES):
        raise UsageError(f"{len(found)} measurements are too many", remedy="name 26 at most")
    offers = _offers([one for _, one in found])
    base = found[0][1]
    return tuple(
        _side(name, place, one, None if at == 0 else base, offers)
        for at, (name, (place, one)) in enumerate(zip(NAMES, found, strict=False))
    )


def _side(
    name: str, place: str, one: Measurement, base: Measurement | None, offers: Sequence[Offer]
) -> Side:
    told = summary(one)
    return Side(
        name=name,
        place=place,
        measurement=one,
        summary=told,
        comparison=compare(base, one) if base else None,
        priced=price_performance(one, told.throughput_per_s, offers),
    )


def priced(one: Measurement, told: Summary) -> Priced:
    """Return what the measured speed costs on the offers of the catalogue."""
    return price_performance(one, told.throughput_per_s, _offers([one]))


def _offers(measurements: Sequence[Measurement]) -> tuple[Offer, ...]:
    """Return the catalogue's, read only where a GPU was measured."""
    if all(one.environment.device == "cpu" for one in measurements):
        return ()
    from tfdyno.catalog.offers import all_offers

    return all_offers()
