"""Choose among ways to run one workload that see the same samples in every update."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.auto_recipe import Option


def suited_precision(
    compute_capability: float, *, first_float16: float, first_bfloat16: float
) -> str:
    """Return the Keras policy that a card's tensor cores are made for; float32 if it has none."""
    if compute_capability >= first_bfloat16:
        return "mixed_bfloat16"
    return "mixed_float16" if compute_capability >= first_float16 else "float32"


def splits(batch_size: int, most: int) -> tuple[tuple[int, int], ...]:
    """Return batches of at most ``most`` that make up one of ``batch_size``, largest first.

    Returns:
        Pairs of a batch and how many of it are accumulated; their product is ``batch_size``.
    """
    counts = [n for n in range(1, batch_size + 1) if batch_size % n == 0]
    return tuple((batch_size // n, n) for n in counts if batch_size // n <= most)


def most_sharing(batch_size: int, cards: int) -> int:
    """Return the most cards, of ``cards``, that can share a batch equally."""
    return next(n for n in range(cards, 0, -1) if batch_size % n == 0)


def preferred(options: Sequence[Option], least_gain_ratio: float) -> Option | None:
    """Return the fastest option that fits, where every change has to pay.

    An option counts as slower by ``least_gain_ratio`` for each way in which it departs from what
    the script does on its own: what is not clearly faster stays.

    Args:
        options: What was weighed.
        least_gain_ratio: 0.05 means that each change must save 5 % of the time.

    Returns:
        None where nothing fits.
    """
    fitting = [one for one in options if one.fits]

    def cost_s(one: Option) -> float:
        return one.update_s.best * (1.0 + least_gain_ratio) ** one.changes

    return min(fitting, key=cost_s, default=None)
