"""What the driver tells of the card while steps ran: idle, slowed down, shared with others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.rules.bottleneck.draft import Draft, evidence, percent
from tfdyno.rules.bottleneck.gains import amdahl
from tfdyno.rules.bottleneck.tables import cause, limits
from tfdyno.words.base.language import say, say_later
from tfdyno.words.base.names import named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.measure.step_facts import CardFacts
    from tfdyno.rules.bottleneck.seen import Seen

_SOURCE = say_later("telemetry of the card")


def idle(seen: Seen) -> Iterator[Draft]:
    """Find a card that does nothing for part of the time, where nothing else says why."""
    known = [one.busy_ratio for one in seen.facts.cards if one.busy_ratio > 0.0]
    if seen.facts.source != "record" or not known:
        return
    busy, host = sum(known) / len(known), seen.facts.host
    if busy > limits()["busy_card_ratio"]:
        return
    full = host.cpu_ratio + host.other_cpu_ratio >= limits()["host_full_ratio"]
    told = [evidence("busy for {share} of the steady time", _SOURCE, share=percent(busy))]
    if host.cpu_ratio > 0.0:
        told.append(
            evidence("{share} of the CPUs were busy", "telemetry", share=percent(host.cpu_ratio))
        )
    yield Draft(cause="host.idle_card", evidence=tuple(told),
                values={"idle": percent(1.0 - busy), "full": "yes" if full else ""})  # fmt: skip


def slowed_down(seen: Seen) -> Iterator[Draft]:
    """Find a card that holds its clock below what is allowed."""
    cards = [one for one in seen.facts.cards if one.lowered_ratio >= limits()["lowered_ratio"]]
    if not cards:
        return
    one = max(cards, key=lambda each: each.lowered_ratio)
    told = [
        evidence(
            "held its clock down for {share} of the steady time: {reasons}",
            _SOURCE,
            share=percent(one.lowered_ratio),
            reasons=say(", ").join(map(named, one.reasons)),
        )
    ]
    if one.clock_hz and one.clock_limit_hz:
        told.append(
            evidence(
                "{clock:,.0f} MHz of {limit:,.0f} on average",
                _SOURCE,
                clock=one.clock_hz / 1e6,
                limit=one.clock_limit_hz / 1e6,
            )
        )
    if one.power_w and one.power_limit_w:
        told.append(
            evidence(
                "{power:,.0f} of {limit:,.0f} W",
                _SOURCE,
                power=one.power_w,
                limit=one.power_limit_w,
            )
        )
    name, thermal = "compute.slowed_down", any("thermal" in why for why in one.reasons)
    yield Draft(
        cause=name,
        evidence=tuple(told),
        gain=amdahl(seen.step_s, _lost_s(seen, one), cause(name).removes),
        values={
            "share": percent(one.lowered_ratio),
            "why": named(one.reasons[0]),
            "kind": "heat" if thermal else "power",
        },
    )


def _lost_s(seen: Seen, one: CardFacts) -> float:
    """Return how much less of a step the card would need at the clock that is allowed."""
    if not (one.clock_hz and one.clock_limit_hz):
        return 0.0
    missing = max(0.0, 1.0 - one.clock_hz / one.clock_limit_hz)
    return missing * (one.busy_ratio or 1.0) * seen.step_s


def shared(seen: Seen) -> Iterator[Draft]:
    """Find a card on which others hold memory: they take its time as well."""
    most = max((one.other_memory_bytes for one in seen.facts.cards), default=0)
    if most > limits()["other_card_bytes"]:
        told = evidence(
            "processes of others hold up to {most} of it", _SOURCE, most=format_bytes(most)
        )
        yield Draft(cause="placement.shared_card", evidence=(told,),
                    values={"held": format_bytes(most)})  # fmt: skip


def memory_errors(seen: Seen) -> Iterator[Draft]:
    """Find a card whose memory fails: what ECC corrects takes time, what it cannot ends the run."""
    corrected = max((one.corrected_errors for one in seen.facts.cards), default=0)
    lost = max((one.uncorrected_errors for one in seen.facts.cards), default=0)
    told = []
    if corrected:
        told.append(
            evidence("{corrected:,} errors corrected while steps ran", _SOURCE, corrected=corrected)
        )
    if lost:
        told.append(
            evidence(
                "{lost:,} errors since the driver was loaded that could not be corrected",
                _SOURCE,
                lost=lost,
            )
        )
    if told:
        yield Draft(
            cause="compute.memory_errors",
            evidence=tuple(told),
            values={
                "kind": "lost" if lost else "corrected",
                "counted": say(" and ").join(one.text for one in told),
            },
        )


CARD_RULES = (idle, slowed_down, shared, memory_errors)
