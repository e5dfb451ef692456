"""Causes made for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.rules.causes import Cause, CauseStep, LogRule, Words

if TYPE_CHECKING:
    from tfdyno.core.doctor.finding import Verdict

ALWAYS = (CauseStep(text=Words(en="Do it.", zh="去做。")),)


def rule(needle: str, match: str = "", **rest: Any) -> LogRule:
    """A rule whose example and near miss do not matter."""
    return LogRule(needle=needle, match=match, example=needle, near_miss="-", **rest)


def made(identifier: str, *rules: LogRule, **rest: Any) -> Cause:
    """An error with these rules; everything else may be given."""
    given: dict[str, Any] = {
        "severity": "error",
        "title": Words(en="It broke.", zh="坏了。"),
        "why": Words(en="So it is.", zh="如此。"),
        "fix": ALWAYS,
        "source": "test",
    }
    return Cause(**(given | rest), id=identifier, log=rules)


def likely(needle: str, match: str = "", verdict: Verdict = "likely") -> LogRule:
    """A rule with a verdict."""
    return rule(needle, match, verdict=verdict)
