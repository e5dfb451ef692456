"""How far another machine's clock is ahead, from questions and answers over a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Exchange = tuple[float, float, float]
"""Own clock at the question, the other's clock at its answer, own clock when that arrived."""


def clock_offset(exchanges: Sequence[Exchange]) -> tuple[float, float]:
    """Return the offset of the other clock and how uncertain it is, as NTP's clock filter has it.

    Of all exchanges the quickest counts: the answer was given somewhere between question and
    arrival, so the true offset lies within half of the time that it took::

        offset = other - (asked + arrived) / 2  ±  (arrived - asked) / 2

    Args:
        exchanges: In seconds; at least one.

    Returns:
        Offset and half-width in seconds; a positive offset: the other clock is ahead.

    Raises:
        ValueError: There is no exchange, or own time went backwards in all of them.

    Source:
        RFC 5905, section 10: the sample with the least delay.
    """
    sound = [one for one in exchanges if one[2] >= one[0]]
    if not sound:
        raise ValueError("need an exchange in which own time did not go backwards")
    asked, answered, arrived = min(sound, key=lambda one: one[2] - one[0])
    return answered - (asked + arrived) / 2.0, (arrived - asked) / 2.0
