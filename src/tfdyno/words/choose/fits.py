"""Several calls of ``fit`` in one script, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.words.base.amounts import listed, short_hours
from tfdyno.words.base.language import ENGLISH, say, spoken

if TYPE_CHECKING:
    from collections.abc import Sequence


def added_fits(numbers: Sequence[int], hours: Sequence[float], card: str) -> str:
    """Write ``Calls 1 and 2 of fit are added up: 12 min and 1.1 h of steps on H100.``."""
    which = listed([str(number) for number in numbers])
    return say(
        "Calls {which} of fit are added up: {taken} on {card}, without the machine's start."
        if len(numbers) > 1
        else "Call {which} of fit is added up: {taken} on {card}, without the machine's start.",
        which=which,
        taken=listed([short_hours(one) for one in hours]),
        card=card,
    )


def left_out_fit(number: int) -> str:
    """Say that a call is not counted, since its length is not known."""
    return say(
        "Call {number} of fit is not in hours and cost: how long its data are "
        "cannot be read; give it steps_per_epoch.",
        number=number,
    )


def unseen_fits(number: int, why: str) -> str:
    """Say from which call on nothing is known, and why."""
    return say(
        "Calls of fit from the {ordinal} on, if there are any, are not in: {why}.",
        ordinal=_ordinal(number),
        why=why,
    )


def _ordinal(number: int) -> str:
    if spoken() != ENGLISH:
        return str(number)
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"
