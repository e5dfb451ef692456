"""Comparisons in words: the verdict with its interval, prices, gaps to the estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.words.base.language import say
from tfdyno.words.base.names import named
from tfdyno.words.bench.measurement import BACKENDS, seconds_words, step_words, unit_of

if TYPE_CHECKING:
    from tfdyno.core.choose.hardware import Offer
    from tfdyno.core.choose.recalibration import Gap
    from tfdyno.core.measure.measurement import BenchTask, Comparison


def side_names(base: BenchTask, other: BenchTask) -> tuple[str, str]:
    """Return what the sides of an A/B are called; with their backends where these differ."""
    if base.backend == other.backend:
        return "A", "B"
    return f"A ({BACKENDS[base.backend]})", f"B ({BACKENDS[other.backend]})"


def verdict_words(base: str, other: str, found: Comparison) -> str:
    """Return the answer in one sentence, such as ``B is 1.24x as fast as A (1.19–1.30, 99 %)``."""
    if found.verdict == "not_comparable":
        return say("{other} does not compare with {base}: {reason}", other=other, base=base,
                   reason=found.reason)  # fmt: skip
    told = {
        "base": base,
        "other": other,
        "ratio": ratio_words(found.ratio),
        "bounds": interval_words(found.interval),
        "sure": say("{share} %", share=f"{100 * found.confidence_ratio:.0f}"),
    }
    if found.verdict == "no_difference":
        return say(
            "No difference between {other} and {base}: {other} is {ratio} as fast "
            "({bounds}, {sure}).",
            **told,
        )
    return say("{other} is {ratio} as fast as {base} ({bounds}, {sure}).", **told)


def ratio_words(ratio: float) -> str:
    """Write ``1.24x``; three decimals close to 1, where the second would hide the effect."""
    return say("{ratio}x", ratio=f"{ratio:.{_decimals(ratio)}f}")


def interval_words(interval: tuple[float, float]) -> str:
    """Write ``1.19–1.30``; one more decimal, or two, where the bounds would read the same."""
    digits = max(map(_decimals, interval))
    ways = [tuple(f"{bound:.{digits + more}f}" for bound in interval) for more in range(3)]
    low, high = next((way for way in ways if way[0] != way[1]), ways[0])
    return f"{low}–{high}"


def _decimals(ratio: float) -> int:
    return 3 if abs(ratio - 1.0) < 0.095 else 2


def price_words(
    task: BenchTask,
    offer: Offer,
    machines: int,
    samples_per_usd: float,
    usd_per_epoch: float | None,
) -> str:
    """Return what a dollar buys on one offer, with the date and the source of its price."""
    machine = f"{offer.provider} {offer.instance}"
    if machines > 1:
        machine = say("{count} x {machine}", count=machines, machine=machine)
    epoch = ""
    if usd_per_epoch is not None:
        epoch = say(", {usd} an epoch", usd=dollars(usd_per_epoch))
    return say(
        "{count} {unit} per US${epoch}: {machine}, {region}, {way}, {price}/h on {date} ({source})",
        count=significant(samples_per_usd),
        unit=say(unit_of(task)),
        epoch=epoch,
        machine=machine,
        region=offer.region,
        way=named(offer.way),
        price=dollars(offer.usd_per_h),
        date=offer.priced_on,
        source=offer.source,
    )


def dollars(usd: float) -> str:
    """Write ``$1.20``, ``$0.0694``, ``$1,230``."""
    if usd >= 100.0:
        return f"${usd:,.0f}"
    return f"${usd:.2f}" if usd >= 1.0 else f"${significant(usd)}"


def gap_words(found: Gap) -> str:
    """Return the measured step beside its estimate."""
    estimated_s, anchor = found.estimated_s, found.anchor
    best, bounds = step_words(estimated_s.best, (estimated_s.low, estimated_s.high))
    return say(
        "{best} ({bounds}); measured {measured}, {factor:.2f} times it, inside its interval"
        if found.inside
        else "{best} ({bounds}); measured {measured}, {factor:.2f} times it, outside its interval",
        best=best,
        bounds=bounds,
        measured=seconds_words(anchor.measured_s),
        factor=anchor.factor_ratio,
    )
