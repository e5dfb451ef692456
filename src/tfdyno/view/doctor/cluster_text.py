"""The report about a cluster as terminal text (answer, findings, a table by node) and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.base.units import MIB, format_bytes, format_si
from tfdyno.view.base.text import COLUMN, WIDTH, block, paint, table, wrapped
from tfdyno.view.doctor.document import finding_document
from tfdyno.words.base.amounts import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfdyno.core.cluster.cluster_facts import Bandwidth, ClusterFacts, ClusterReport, NodeFacts
    from tfdyno.core.doctor.finding import Finding

MARKS = {"error": "✗", "warning": "!", "note": "·"}
STYLES = {"error": "red", "warning": "yellow", "note": "dim"}
MOST_SEEN = 6


def cluster_text(report: ClusterReport, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return the whole report.

    Args:
        report: What was found.
        width: Columns of the screen.
        colour: Whether to paint.
    """
    parts = [_answer(report, width, colour)]
    parts += [_finding(one, width, colour) for one in report.findings]
    parts += [_nodes(report.facts, width, colour)]
    parts += filter(None, [_exchanges(report.bandwidths, width, colour)])
    rest = [block("fine", " · ".join(report.fine), width)] if report.fine else []
    rest += [block("" if number else "not run", note, width)
             for number, note in enumerate(report.facts.notes)]  # fmt: skip
    parts += ["\n".join(rest)] if rest else []
    return "\n\n".join(parts)


def answer(report: ClusterReport) -> str:
    """Say first whether they can train together, or the worst that is in the way."""
    facts = report.facts
    errors = [one for one in report.findings if one.severity == "error"]
    if errors:
        more = f" ({plural(len(errors) - 1, 'more error')})" if len(errors) > 1 else ""
        return (
            f"{plural(facts.size, 'node')} cannot train together: {_lower(errors[0].summary)}{more}"
        )
    warnings = sum(one.severity == "warning" for one in report.findings)
    held = f", with {plural(warnings, 'warning')}" if warnings else ""
    return f"{plural(facts.size, 'node')} can train together{held}."


def _answer(report: ClusterReport, width: int, colour: bool) -> str:
    style = "red" if report.exit_code else "green"
    mark = "✗" if report.exit_code else "✓"
    text = wrapped(answer(report), width=width, first=f"{mark} ", rest="  ")
    return paint(text, style, colour=colour)


def _finding(one: Finding, width: int, colour: bool) -> str:
    mark = paint(MARKS[one.severity], STYLES[one.severity], colour=colour)
    lines = [wrapped(f"{one.summary}  [{one.cause}]", width=width, first=f"{mark} ", rest="  ")]
    seen = [f"{evidence.source}: {evidence.text}" for evidence in one.evidence]
    left = len(seen) - MOST_SEEN
    seen = [*seen[:MOST_SEEN], *([f"and {left} more"] if left > 0 else [])]
    lines += [block("" if number else "because", text, width) for number, text in enumerate(seen)]
    lines.append(block("harm", one.why, width))
    for step in one.fix:
        lines.append(block("fix", step.text, width))
        if step.command:
            lines.append(" " * (COLUMN + 2) + paint(step.command, "cyan", colour=colour))
    return "\n".join(lines)


def _nodes(facts: ClusterFacts, width: int, colour: bool) -> str:
    headers = ["node", "host", "tensorflow", "cards", "clock", "line", "folder", "/dev/shm"]
    rows = [list(_row(facts, node)) for node in facts.nodes]
    return table(headers, rows, width=width, elastic=1, spare=(7, 2, 6), colour=colour)


def _row(facts: ClusterFacts, node: NodeFacts) -> Iterator[str]:
    yield str(node.rank)
    yield node.host
    yield node.versions.get("tensorflow", "none")
    names = {card.slug or card.name for card in node.cards}
    yield f"{len(node.cards)} x {', '.join(sorted(names))}" if node.cards else "CPU"
    clock = next((one for one in facts.clocks if one.rank == node.rank), None)
    yield (
        f"{round(clock.offset_s * 1e3, 1) + 0.0:+,.1f} ms"
        if clock
        else "0"
        if node.rank == 0
        else "–"
    )
    rate = next((one.bytes_per_s for one in facts.links if one.sender == node.rank), None)
    yield format_si(rate, "B/s", 2) if rate else "–"
    speed = next((one for one in facts.speeds if one.rank == node.rank), None)
    written = speed.write_bytes_per_s if speed else None
    yield f"{node.folder.filesystem} {format_si(written, 'B/s', 2) if written else ''}".strip()
    yield format_bytes(node.shared_memory_bytes, 2) if node.shared_memory_bytes >= 0 else "–"


def _exchanges(bandwidths: Sequence[Bandwidth], width: int, colour: bool) -> str:
    if not bandwidths:
        return ""
    rows = []
    for one in bandwidths:
        where = "nodes" if one.between == "nodes" else f"cards of node {one.rank}"
        low, high = (format_si(x, "B/s", 2) for x in (one.low_bytes_per_s, one.high_bytes_per_s))
        expected = one.expected_bytes_per_s
        rows.append([
            f"{one.implementation}, {one.replicas} {where}",
            f"{one.size_bytes / MIB:g} MiB",
            format_si(one.bus_bytes_per_s, "B/s", 2),
            f"{low} to {high}",
            format_si(expected, "B/s", 2) if expected else "not known",
            f"{one.small_s * 1e3:.2g} ms",
        ])  # fmt: skip
    headers = ["all-reduce", "size", "bus", "90 % of repeats", "expected", "smallest"]
    lines = [table(headers, rows, width=width, elastic=0, spare=(3, 5), colour=colour)]
    lines += [block("expected", one.expected_from, width) for one in bandwidths]
    return "\n".join(lines)


def _lower(sentence: str) -> str:
    """Return a sentence after a colon: names of variables keep their capitals."""
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]


def cluster_document(report: ClusterReport) -> dict[str, Any]:
    """Return the report under its documented keys, findings as ``doctor --json`` has them."""
    return {
        "answer": answer(report),
        "can_train": not report.exit_code,
        "findings": [finding_document(one) for one in report.findings],
        "bandwidths": to_builtins(report.bandwidths),
        "fine": list(report.fine),
        "facts": to_builtins(report.facts),
    }
