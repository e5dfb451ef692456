"""One way to write a finding about nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.doctor.finding import Evidence, Finding, FixStep, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tfdyno.core.cluster.cluster_facts import NodeFacts

MOST_NAMED = 4
PAGE = "docs/how-to/check-a-cluster.md"


def draft(
    cause: str,
    severity: Severity,
    summary: str,
    *,
    why: str,
    seen: Iterable[tuple[str, str]],
    fix: str,
    command: str = "",
) -> Finding:
    """Return a finding.

    Args:
        cause: Its id behind ``cluster.``.
        severity: ``error`` where a training would fail or be wrong.
        summary: One sentence.
        why: How the cause makes the harm.
        seen: Who saw what: (``worker 1 (node-b)``, ``keras 3.14.0``).
        fix: What to do.
        command: That does it.
    """
    return Finding(
        cause=f"cluster.{cause}",
        verdict="proven",
        severity=severity,
        summary=summary,
        why=why,
        evidence=tuple(Evidence(source=who, text=what) for who, what in seen),
        fix=(FixStep(text=fix, command=command),),
        link=PAGE,
    )


def named(nodes: Sequence[NodeFacts]) -> str:
    """Name ``worker 1 (a) and worker 2 (b)``, and how many more."""
    return joined([node.name for node in nodes])


def joined(words: Sequence[str]) -> str:
    """Join ``a``, ``a and b``, ``a, b and c``; of many the first, and how many more."""
    shown = list(words[:MOST_NAMED])
    if len(words) > MOST_NAMED:
        shown.append(f"{len(words) - MOST_NAMED} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return each value with who has it."""
    found: dict[str, list[str]] = {}
    for value, who in pairs:
        found.setdefault(value, []).append(who)
    return found


def differing(values: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return each value with who has it, the most frequent first."""
    ordered = sorted(values.items(), key=lambda entry: -len(entry[1]))
    return [(joined(list(who)), value) for value, who in ordered]
