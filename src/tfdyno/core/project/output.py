"""What a step has made: the note that lies in its output."""

from __future__ import annotations

from dataclasses import dataclass, field

FILE = "made.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Of one output: what it was made from, and when."""

    step: str
    key: str
    rests_on: dict[str, str] = field(default_factory=dict)
    before: dict[str, str] = field(default_factory=dict)
    """``stamp`` of each step before it, as its output was taken."""
    stamp: str = ""
    """The mark of this making: another one makes another stamp, with the same key too."""
    words: tuple[str, ...] = ()
    headline: str = ""
    duration_s: float = 0.0
    """The time of all sessions."""
    exit_code: int = 0
    changed: str = ""
    """What it was made from and that changed meanwhile, in words: whether it was made from the old
    or the new nobody knows, so that it does not hold. Empty: nothing did."""
