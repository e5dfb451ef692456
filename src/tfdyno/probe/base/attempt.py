"""How a probe is run: with a time limit, never raising, its end on record."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.doctor.machine_facts import MachineFacts, ProbeResult, ProbeState
from tfdyno.probe.base.host import Host

LIMIT_S = 2.0
_OWN = threading.local()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one probe found: fields of ``MachineFacts``, and how it ended."""

    fields: dict[str, Any]
    state: ProbeState = "ok"
    reason: str = ""


Probe = Callable[[Host, MachineFacts], Part]


def found(**fields: Any) -> Part:
    """Return a probe that ended well."""
    return Part(fields=fields)


def not_run(reason: str, **fields: Any) -> Part:
    """Return a probe that had nothing to look at; ``reason`` continues "not run because"."""
    return Part(fields=fields, state="not_run", reason=reason)


def failed(reason: str, **fields: Any) -> Part:
    """Return a probe that could not end its work; ``fields`` hold what it found until then."""
    return Part(fields=fields, state="failed", reason=reason)


def attempt(
    name: str, probe: Probe, host: Host, facts: MachineFacts, *, limit_s: float = LIMIT_S
) -> MachineFacts:
    """Run a probe and add what it found.

    A file system or a driver may hang for ever, so the probe runs in a thread that is left behind
    after ``limit_s`` seconds.

    Returns:
        The facts with the part of the probe and its result; never raises.
    """
    began_s = time.perf_counter()
    part = _runner().part(probe, host, facts, limit_s)
    result = ProbeResult(
        name=name,
        state=part.state,
        reason=part.reason,
        elapsed_s=time.perf_counter() - began_s,
    )
    return replace(facts, **part.fields, probes=(*facts.probes, result))


class _Runner(threading.Thread):
    """Runs probe after probe: a thread for each would take longer than most of them."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._asked, self._told = threading.Lock(), threading.Lock()
        self._asked.acquire()
        self._told.acquire()
        self._work: Callable[[], Part] = lambda: failed("nothing was asked")
        self._part = self._work()
        self.hangs = False

    def run(self) -> None:
        while self._asked.acquire():
            self._part = self._work()
            self._told.release()

    def part(self, probe: Probe, host: Host, facts: MachineFacts, limit_s: float) -> Part:
        self._work = lambda: _run(probe, host, facts)
        self._asked.release()
        self.hangs = not self._told.acquire(timeout=limit_s)
        return failed(f"no answer within {limit_s:g} s") if self.hangs else self._part


def _runner() -> _Runner:
    """Return this thread's; another one where it hangs, or is gone with a fork."""
    known: _Runner | None = getattr(_OWN, "runner", None)
    if known is not None and known.is_alive() and not known.hangs:
        return known
    _OWN.runner = _Runner()
    _OWN.runner.start()
    return _OWN.runner  # type: ignore[no-any-return]


def _run(probe: Probe, host: Host, facts: MachineFacts) -> Part:
    try:
        return probe(host, facts)
    except Exception as error:  # whatever a strange machine brings is a result
        return failed(f"{type(error).__name__}: {error}")
