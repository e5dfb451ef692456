"""What ``doctor --json`` prints: the documented keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.words.doctor.languages import move_sentence

if TYPE_CHECKING:
    from tfdyno.core.doctor.finding import Diagnosis, Finding
    from tfdyno.core.doctor.machine_facts import MachineFacts
    from tfdyno.core.doctor.move import Move


def doctor_document(diagnosis: Diagnosis, facts: MachineFacts | None) -> dict[str, Any]:
    """Write ``{"findings": […], …}``: the root cause first, harmless ones at the end.

    ``evidence`` and ``fix`` are sentences and commands as a person reads them; ``steps`` has the
    sentence and the command of each step apart.
    """
    return {
        "findings": [finding_document(one) for one in (*diagnosis.findings, *diagnosis.ignored)],
        "memory": list(diagnosis.memory),
        "fine": list(diagnosis.fine),
        "notes": [*diagnosis.notes, *filter(None, [diagnosis.aged])],
        "unexplained": [f"{seen.source}: {seen.text}" for seen in diagnosis.unexplained],
        **({"move": _move(diagnosis.move)} if diagnosis.move else {}),
        "machine": to_builtins(facts) if facts else None,
    }


def _move(move: Move) -> dict[str, Any]:
    """Return whether the code moves, and every place with its effect."""
    return {**to_builtins(move), "sentence": move_sentence(move, "en")}


def finding_document(one: Finding) -> dict[str, Any]:
    """Return a finding under the documented keys."""
    return {
        "cause": one.cause,
        "verdict": one.verdict,
        "severity": one.severity,
        "summary": one.summary,
        "why": one.why,
        "evidence": [f"{seen.source}: {seen.text}" for seen in one.evidence],
        "fix": [
            ": ".join(filter(None, (step.text.rstrip(".。"), step.command))) for step in one.fix
        ],
        "steps": to_builtins(one.fix),
        "harmless": one.harmless,
        "symptoms": list(one.symptoms),
        "link": one.link,
        "count": one.count,
    }
