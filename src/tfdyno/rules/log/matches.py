"""The matches of a log: its hits, judged by the rest of the log and by the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.condition import holds
from tfdyno.rules.log.explained import FEW_LINES, Line, LogFacts, RuleHits
from tfdyno.rules.match import ORDER, Match

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tfdyno.core.doctor.finding import Evidence, Verdict

EVIDENCE_LINES = 3
"""Lines of a log that are quoted for one cause."""


def log_matches(log: LogFacts, known: Mapping[str, str]) -> tuple[Match, ...]:
    """Return the matches that the log alone gives, one per cause, in the order of the rules."""
    by_cause: dict[str, list[RuleHits]] = {}
    topics: dict[str, list[RuleHits]] = {}
    for hits in holding(log):
        rule = hits.rule
        lines = tuple(one for one in hits.lines if holds(rule.when, {**known, **one.values}))
        if lines:
            share = hits.count - len(hits.lines) if len(lines) == len(hits.lines) else 0
            kept = RuleHits(cause=hits.cause, rule=rule, lines=lines, count=len(lines) + share)
            (topics if rule.alone else by_cause).setdefault(hits.cause, []).append(kept)
    if log.line_count <= FEW_LINES and all(cause.startswith("sym.") for cause in by_cause):
        by_cause = topics | by_cause
    return tuple(_match(cause, hits) for cause, hits in by_cause.items())


def holding(log: LogFacts) -> Iterator[RuleHits]:
    """Yield hits of the rules whose ``also`` and ``unless`` hold in this log."""
    for hits in log.hits:
        rule = hits.rule
        has_also = not rule.also or log.seen.intersection(rule.also)
        if has_also and not log.seen.intersection(rule.unless):
            yield hits


def _match(cause: str, hits: list[RuleHits]) -> Match:
    """Let of several rules of one cause the most certain give verdict and first values."""
    hits = sorted(hits, key=lambda one: (ORDER.index(one.rule.verdict), one.lines[0].number))
    verdict: Verdict = hits[0].rule.verdict
    found: dict[str, str] = {}
    for line in (line for one in hits for line in one.lines):
        found = {**line.values, **found}
    distinct = {line.number: line for one in reversed(hits) for line in one.lines}
    beyond = max(one.count - len(one.lines) for one in hits)
    return Match(
        cause=cause,
        verdict=verdict,
        evidence=_evidence(hits),
        basis="log",
        values=found,
        line=min(distinct),
        count=len(distinct) + beyond,
    )


def _evidence(hits: list[RuleHits]) -> tuple[Evidence, ...]:
    """Return lines that differ, the most telling rule's first, then in the order of the log."""
    lines: dict[str, Line] = {}
    for one in hits:
        for line in one.lines:
            lines.setdefault(line.text, line)
    shown = sorted(list(lines.values())[:EVIDENCE_LINES], key=lambda line: line.number)
    return tuple(line.evidence for line in shown)
