"""What would change the answer: the same choice with one thing altered, or a card bought."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.model.choose.choose import eligible, picks_of
from tfdyno.model.choose.cost import cheapest_of, cost_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.advice import Candidate
    from tfdyno.core.choose.hardware import Gpu


def without_spot(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the balanced choice of capacity that nobody takes away; None where there is none."""
    return picks_of([c for c in candidates if not c.spot]).get("balanced")


def round_deadline_h(hours: float) -> float:
    """Round about half of ``hours`` down to one digit: a deadline that a person would name."""
    half = hours / 2.0
    unit = 10.0 ** math.floor(math.log10(half))
    return math.floor(half / unit) * unit


def within_hours(candidates: Sequence[Candidate], deadline_h: float) -> Candidate | None:
    """Return the cheapest eligible choice that finishes within ``deadline_h`` hours, or None."""
    return cheapest_of(c for c in eligible(candidates) if c.hours.best <= deadline_h)


def without_deadline(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the cheapest choice that is only too late, when it is cheaper than all in time."""
    late = cheapest_of(c for c in candidates if c.verdict == "too late")
    best = cheapest_of(eligible(candidates))
    return late if late and (best is None or cost_of(late) < cost_of(best)) else None


def without_budget(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the quickest choice that is only too dear, if quicker than all within the budget."""
    dear = [c for c in candidates if c.verdict == "too dear"]
    quickest = min(dear, key=lambda c: (c.hours.best, cost_of(c), c.slug), default=None)
    best = min((c.hours.best for c in eligible(candidates)), default=math.inf)
    return quickest if quickest and quickest.hours.best < best else None


def flip_price(candidates: Sequence[Candidate], pick: Candidate) -> tuple[float, Candidate] | None:
    """Return the price of an hour above which another card is cheaper than ``pick``, and that card.

    Returns:
        US$ per hour and the next dearer candidate with another GPU, or None where the pick has no
        hourly price or nothing on another card is dearer.
    """
    if pick.offer is None or pick.offer.usd_per_h <= 0.0:
        return None
    others = [c for c in eligible(candidates) if c.gpu != pick.gpu and cost_of(c) > cost_of(pick)]
    runner_up = cheapest_of(others)
    return (cost_of(runner_up) / pick.hours.best, runner_up) if runner_up else None


def batch_limits(candidates: Sequence[Candidate], batch_size: int) -> list[tuple[int, str]]:
    """Return largest batch and name of every eligible card, smallest batch first.

    Where a card is offered in several numbers, whose memory differs, its largest batch counts.
    """
    limits: dict[str, int] = {}
    for one in eligible(candidates):
        limit = one.estimate.max_batch_size
        if limit is not None and limit >= batch_size:
            limits[one.gpu_name] = max(limit, limits.get(one.gpu_name, 0))
    return sorted((limit, name) for name, limit in limits.items())


def break_even_h(gpu: Gpu, *, rent_usd_per_h: float, electricity_usd_per_kwh: float) -> float:
    """Return hours of use after which a bought card has cost less than a rented one.

        t = price / (rent - power * electricity)

    The card is taken to draw its full board power while it works; the host computer, cooling and
    resale are left out on both sides.

    Args:
        gpu: Its launch price (must be known) and board power.
        rent_usd_per_h: Price of an hour of the same card, above 0.
        electricity_usd_per_kwh: What the buyer pays for energy.

    Returns:
        Hours; infinite where electricity alone costs as much as the rent.

    Raises:
        ValueError: The launch price is unknown or the rent is not above 0.
    """
    if gpu.launch_price_usd <= 0 or rent_usd_per_h <= 0:
        raise ValueError(
            f"need a price and a rent above 0, got {gpu.launch_price_usd}, {rent_usd_per_h}"
        )
    saved_usd_per_h = rent_usd_per_h - gpu.tdp_w / 1000.0 * electricity_usd_per_kwh
    return gpu.launch_price_usd / saved_usd_per_h if saved_usd_per_h > 0 else float("inf")


def paid_off_after_h(break_even_h: float, run_h: float, *, run_every_h: float) -> float:
    """Return hours on the clock until so many hours of use are over.

        t = break-even / run * max(run, run every)

    Args:
        break_even_h: Hours of use after which the card has paid for itself.
        run_h: That one run uses the card; 0.0: not known, the card never rests.
        run_every_h: A shorter run is started once in so many hours.
    """
    return break_even_h * max(1.0, run_every_h / run_h) if run_h > 0.0 else break_even_h
