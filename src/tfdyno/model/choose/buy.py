"""When buying a card beats renting it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfdyno.core.choose.hardware import Gpu


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
