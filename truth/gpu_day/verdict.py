"""What a step has shown: checks with their numbers, and what follows from them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Status = Literal["passed", "failed", "skipped", "not run"]
ORDER: tuple[Status, ...] = ("failed", "passed", "skipped", "not run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    what: str
    found: str
    """With its unit."""
    wanted: str
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a step has shown, before it is known how long it took."""

    status: Status
    why: str = ""
    """Why it did not pass."""
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A step that is over, as it is kept and shown."""

    name: str
    title: str
    status: Status
    why: str = ""
    checks: tuple[Check, ...] = ()
    seconds_s: float = 0.0
    began_s: float = 0.0
    """Since the start of the sitting in which it ran."""
    commands: tuple[str, ...] = ()
    logs: tuple[str, ...] = field(default=())
    """From the folder of the day."""

    @property
    def is_over(self) -> bool:
        """Whether it need not be run again: its result will not change by more time."""
        return self.status in ("passed", "failed")


def skipped(why: str) -> Verdict:
    """There was nothing to try."""
    return Verdict(status="skipped", why=why)


def not_run(why: str) -> Verdict:
    """It could have been tried, and was not to its end."""
    return Verdict(status="not run", why=why)


def failed(why: str, checks: Sequence[Check] = ()) -> Verdict:
    """It did not do what it should."""
    return Verdict(status="failed", why=why, checks=tuple(checks))


def judged(checks: Sequence[Check]) -> Verdict:
    """Passed where every check did; the first that did not is the reason."""
    wrong = next((one for one in checks if not one.ok), None)
    if not checks:
        return failed("it told nothing that could be checked")
    why = f"{wrong.what}: {wrong.found}, wanted {wrong.wanted}" if wrong else ""
    return Verdict(status="failed" if wrong else "passed", why=why, checks=tuple(checks))


def row_of(raw: dict[str, Any]) -> Row:
    """A row as JSON holds it."""
    checks = tuple(Check(**one) for one in raw.get("checks", ()))
    lists = {name: tuple(raw.get(name, ())) for name in ("commands", "logs")}
    return Row(**{**raw, **lists, "checks": checks})


def raw_of(row: Row) -> dict[str, Any]:
    """The same for JSON."""
    return asdict(row)
