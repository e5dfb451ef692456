"""What a rule concluded, before it is put into words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Literal

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.doctor.finding import Evidence, Verdict

Basis = Literal["log", "facts", "code"]
ORDER: tuple[Verdict, ...] = ("proven", "likely", "possible")


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One cause with what speaks for it."""

    cause: str
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    basis: Basis
    values: Mapping[str, str] = field(default_factory=dict)
    """What was read off: ``{"wanted": "9.3.0", "found": "9.1.0"}``; fills the cause's texts."""
    line: int = 0
    """Where the log first shows it; 0 for facts."""
    count: int = 1

    def told(self, values: Mapping[str, str]) -> Match:
        """Return it with more values."""
        return replace(self, values={**self.values, **values})

    def recast(self, cause: str, verdict: Verdict, /, **values: str) -> Match:
        """Return the same evidence as another cause, with more values."""
        return replace(self, cause=cause, verdict=verdict, values={**self.values, **values})
