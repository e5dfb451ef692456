"""What the cards did while a look's own steps ran: watched from outside, as a bench does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.measure.measurement import CardTelemetry
from tfdyno.jobs.diagnose._recorded import card_facts
from tfdyno.probe.cards import cards
from tfdyno.probe.telemetry.telemetry import Sampler

if TYPE_CHECKING:
    from tfdyno.core.measure.measurement import Environment, Telemetry
    from tfdyno.core.measure.step_facts import CardFacts, StepFacts
    from tfdyno.core.messages.diagnose import SteadySpan

LEAST_POINTS = 3
"""The fewest points: with fewer, a clock that is lowered for a moment would be lowered for most of
the time."""
UNREAD = (
    "What the card itself did could not be read through NVML: neither a lowered clock nor other "
    "processes on it would be told."
)


def card_sampler(visible: str | None) -> Sampler | None:
    """Watch the cards that a child may use; None where there are none, or NVML is mute.

    Args:
        visible: ``CUDA_VISIBLE_DEVICES`` of the child; None: all cards.
    """
    with cards.opened() as nvml:
        return Sampler(visible=visible) if nvml and cards.handles(nvml, visible) else None


def with_cards(
    facts: StepFacts,
    steady: SteadySpan | None,
    sampler: Sampler | None,
    environment: Environment,
) -> StepFacts:
    """Return the facts of a look with what its cards did in its steady steps.

    Args:
        facts: What the child saw.
        steady: When and on which cards they ran, as it tells.
        sampler: That watched it; None: there was nothing to watch.
        environment: Where it ran.
    """
    if not steady or not steady.cards:
        return facts
    told = sampler.telemetry(steady.began_s, steady.ended_s) if sampler else None
    if told and len(told.at_s) < LEAST_POINTS:
        return facts
    read = _read(told, steady.cards, environment) if told else ()
    if not read:
        return replace(facts, notes=(*facts.notes, UNREAD))
    return replace(facts, cards=read)


def _read(
    told: Telemetry, used: tuple[int, ...], environment: Environment
) -> tuple[CardFacts, ...]:
    """Return those of the cards used that told anything of themselves.

    A card that is divided tells of all its slices together, the neighbours' too: none then.
    """
    if any(one.mig for one in environment.cards):
        return ()
    found = card_facts([(told, range(len(told.at_s)))], environment)
    mute = [one == CardTelemetry(index=one.index) for one in told.cards]
    return tuple(found[each] for each in used if each < len(found) and not mute[each])
