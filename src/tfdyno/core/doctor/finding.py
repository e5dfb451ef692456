"""What is wrong or worth knowing, with the evidence and the exact thing to do."""

from __future__ import annotations

from typing import Literal

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.doctor.move import Move

Verdict = Literal["proven", "likely", "possible"]
Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Something that was seen, and where."""

    text: str
    """A line of a log as it stood, or a fact in words."""
    source: str
    """``line 12``, ``/proc/driver/nvidia/version``, ``metadata of tensorflow 2.21.0``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixStep:
    """One thing to do: a sentence, a command for a shell, or both."""

    text: str = ""
    command: str = ""

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where both are empty."""
        if not (self.text or self.command):
            raise ValueError("a step of a fix needs a sentence or a command")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A cause with its proof and its fix."""

    cause: str
    """Stable id, such as ``lib.cudnn_version_mismatch``; its reference page has the same anchor."""
    verdict: Verdict
    severity: Severity
    summary: str
    """One sentence for a person."""
    why: str
    """How the cause makes the symptom, in one or two sentences."""
    evidence: tuple[Evidence, ...]
    fix: tuple[FixStep, ...]
    harmless: bool = False
    symptoms: tuple[str, ...] = ()
    """Ids of other causes that were seen and that this one explains."""
    link: str = ""
    count: int = 1
    """How often it was seen."""

    def __post_init__(self) -> None:
        """Raise ``ValueError`` without evidence or without a fix."""
        if not self.evidence or not self.fix:
            raise ValueError(f"the finding {self.cause} needs evidence and a fix")


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The answer of the doctor: findings with the root cause first."""

    findings: tuple[Finding, ...]
    """Ordered; none is harmless."""
    ignored: tuple[Finding, ...] = ()
    """Harmless ones, the most frequent first."""
    memory: tuple[str, ...] = ()
    """What held the memory where it ran out, and what would fit, in sentences."""
    fine: tuple[str, ...] = ()
    """What was checked and is in order, in words."""
    notes: tuple[str, ...] = ()
    """What could not be looked at, and why."""
    aged: str = ""
    """Why the tables behind it may be older than the TensorFlow, in one sentence; empty: they are
    not."""
    move: Move | None = None
    """Whether the code moves to another backend, where that was asked."""
    unexplained: tuple[Evidence, ...] = ()
    """The first errors of a log in which no finding is an error: what is wrong is unknown."""
