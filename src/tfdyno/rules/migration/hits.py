"""What a rule on code found, and how the finds of one cause become one match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tfdyno.core.doctor.finding import Evidence, Verdict
from tfdyno.rules.condition import holds
from tfdyno.rules.match import ORDER, Match

if TYPE_CHECKING:
    from tfdyno.rules.migration.sites import Module, Site

_LINES = 8
_LONGEST = 160
_NAMES = 4
GONE = "gone"
"""``keras_by`` of a name that the last Keras 2 lacks as well; else how Keras is imported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One place that speaks for a cause."""

    cause: str
    """The cause without the group: ``lr_argument``."""
    source: str
    """``train.py:41``."""
    text: str
    """The line of code."""
    verdict: Verdict = "likely"
    name: str = ""
    """What is wrong there, in short: ``tf.Session``."""
    instead: str = ""
    """What to write instead; empty where that takes more than a name."""
    values: Mapping[str, str] = field(default_factory=dict)


def hit_at(
    site: Site,
    module: Module,
    cause: str,
    verdict: Verdict = "likely",
    *,
    name: str = "",
    instead: str = "",
) -> Hit:
    """Return the find of a cause at a place of a Python file."""
    return Hit(
        cause=cause,
        source=module.source(site.line),
        text=module.text(site.line),
        verdict=verdict,
        name=name,
        instead=instead,
    )


def applies(when: Mapping[str, str], values: Mapping[str, str]) -> bool:
    """Return whether no condition is known to fail: an unknown one counts as the newest release."""
    known = {name: text for name, text in when.items() if text and values.get(name)}
    return holds(known, values)


def certainty(when: Mapping[str, str], values: Mapping[str, str]) -> Verdict:
    """Return ``proven`` where the versions that matter are known, else ``likely``."""
    return "proven" if all(values.get(name) for name, text in when.items() if text) else "likely"


def matches(hits: Iterable[Hit], *, group: str = "code", most: int = _LINES) -> tuple[Match, ...]:
    """Return one match for each cause, in the order in which the causes were first met.

    Args:
        hits: The finds.
        group: Of the causes.
        most: Lines that speak for one; the others are counted.
    """
    by_cause: dict[str, list[Hit]] = {}
    for hit in hits:
        own = by_cause.setdefault(hit.cause, [])
        if all((hit.source, hit.name) != (one.source, one.name) for one in own[-4:]):
            own.append(hit)
    return tuple(_match(f"{group}.{cause}", own, most) for cause, own in by_cause.items())


def _match(cause: str, group: list[Hit], most: int) -> Match:
    first = min(group, key=lambda hit: ORDER.index(hit.verdict))
    names = list(dict.fromkeys(hit.name for hit in group if hit.name))
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    values = dict(first.values) | {"where": first.source, "places": str(len(group))}
    if names:
        values |= {"name": names[0], "names": ", ".join(names[:_NAMES]) + more}
    ways = {hit.values.get("keras_by", "") for hit in group}
    if len(ways) > 1:
        values["keras_by"] = GONE if GONE in ways else "both"
    if first.instead:
        values["instead"] = first.instead
    shown: dict[str, Evidence] = {}
    for source in dict.fromkeys(hit.source for hit in group):
        own = [hit for hit in group if hit.source == source]
        shown[source] = Evidence(text=_line(own), source=source)
    return Match(
        cause=cause,
        verdict=first.verdict,
        evidence=tuple(shown.values())[:most],
        basis="code",
        values=values,
        count=len(shown),
    )


def _line(hits: list[Hit]) -> str:
    """Write a line of code with all that is to stand there instead."""
    text = hits[0].text
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    instead = ", ".join(dict.fromkeys(hit.instead for hit in hits if hit.instead))
    return f"{text}  →  {instead}" if instead else text
