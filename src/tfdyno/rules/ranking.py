"""Root causes first: what explains others leads, its symptoms are listed under it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tfdyno.core.base.dataclass import dataclass
from tfdyno.rules.match import ORDER, Match

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tfdyno.core.doctor.finding import Severity
    from tfdyno.rules.causes import Cause

SYMPTOM_RANK = 90
"""The rank from which on a cause proves nothing alone, and whatever else was found goes before it.
"""
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A match with the causes that it explains."""

    match: Match
    symptoms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """All matches in their order."""

    roots: tuple[Ranked, ...]
    harmless: tuple[Ranked, ...]
    """The most frequent first."""


def root_first(matches: Iterable[Match], causes: Mapping[str, Cause]) -> Ranking:
    """Order the matches, one per cause, and put what is explained under what explains it.

    A cause explains what its ``explains`` names, and what that explains in turn. Where two explain
    each other the better one leads. What is only possible explains mere symptoms alone. A log
    speaks before facts, unless it shows symptoms only.

    Args:
        matches: Of any basis; several of one cause become one.
        causes: Every cause that a match names, by id.
    """
    merged = _merge(matches)
    real = [one for one in merged if not causes[one.cause].harmless]
    real.sort(key=lambda one: _key(one, causes[one.cause]))
    reach = _reach(real, causes)
    place = {one.cause: position for position, one in enumerate(real)}

    def is_explained(cause: str) -> bool:
        above = (other for other in reach if other != cause and cause in reach[other])
        return any(o not in reach[cause] or place[o] < place[cause] for o in above)

    roots: dict[str, list[str]] = {c: [] for c in place if not is_explained(c)}
    for cause in place:
        if cause not in roots:
            roots[next(root for root in roots if cause in reach[root])].append(cause)
    harmless = [one for one in merged if causes[one.cause].harmless]
    harmless.sort(key=lambda one: (causes[one.cause].rank >= SYMPTOM_RANK, -one.count, one.line))
    return Ranking(
        roots=tuple(
            Ranked(match=real[place[root]], symptoms=tuple(symptoms))
            for root, symptoms in roots.items()
        ),
        harmless=tuple(Ranked(match=one) for one in harmless),
    )


def names_cause(pattern: str, cause: str) -> bool:
    """Return whether an entry of ``explains`` means a cause: its id, or ``lib.*`` for a group."""
    return cause.startswith(pattern[:-1]) if pattern.endswith(".*") else cause == pattern


def _key(one: Match, cause: Cause) -> tuple[object, ...]:
    return (
        cause.rank >= SYMPTOM_RANK,
        one.basis != "log",
        ORDER.index(one.verdict),
        _SEVERITIES.index(cause.severity),
        cause.rank,
        one.line,
        one.cause,
    )


def _reach(real: list[Match], causes: Mapping[str, Cause]) -> dict[str, set[str]]:
    """Return which causes each cause explains, directly or through others."""
    reach = {
        one.cause: {other.cause for other in real if _explains(one, other, causes)} for one in real
    }
    for _ in reach:
        before = sum(map(len, reach.values()))
        for below in reach.values():
            below.update(*(reach[other] for other in tuple(below)))
        if sum(map(len, reach.values())) == before:
            break
    return reach


def _explains(one: Match, other: Match, causes: Mapping[str, Cause]) -> bool:
    if one.cause == other.cause:
        return False
    is_weak = one.verdict == "possible" and other.verdict != "possible"
    if is_weak and causes[other.cause].rank < SYMPTOM_RANK:
        return False
    return any(names_cause(pattern, other.cause) for pattern in causes[one.cause].explains)


def _merge(matches: Iterable[Match]) -> list[Match]:
    merged: dict[str, Match] = {}
    for one in matches:
        merged[one.cause] = _both(merged[one.cause], one) if one.cause in merged else one
    return list(merged.values())


def _both(first: Match, second: Match) -> Match:
    """Return one match of two of the same cause; the more certain one comes first."""
    if ORDER.index(second.verdict) < ORDER.index(first.verdict):
        first, second = second, first
    evidence = dict.fromkeys(first.evidence + second.evidence)
    lines = [one.line for one in (first, second) if one.line]
    return dataclasses.replace(
        first,
        evidence=tuple(evidence),
        basis="log" if "log" in {first.basis, second.basis} else first.basis,
        values={**second.values, **first.values},
        line=min(lines, default=0),
        count=max(first.count, second.count),
    )
