"""How a probe is run: with a time limit, never raising, its end on record."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tfdyno.core.machine_facts import MachineFacts, ProbeResult, ProbeState
from tfdyno.probe.host import Host

LIMIT_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one probe found: fields of ``MachineFacts``, and how it ended."""

    fields: dict[str, Any]
    state: ProbeState = "ok"
    reason: str = ""


Probe = Callable[[Host, MachineFacts], Part]


def found(**fields: Any) -> Part:
    """A probe that ended well."""
    return Part(fields=fields)


def not_run(reason: str, **fields: Any) -> Part:
    """A probe that had nothing to look at; ``reason`` continues "not run because"."""
    return Part(fields=fields, state="not_run", reason=reason)


def failed(reason: str, **fields: Any) -> Part:
    """A probe that could not end its work; ``fields`` hold what it found until then."""
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
    box: list[Part] = []
    began_s = time.perf_counter()
    thread = threading.Thread(target=lambda: box.append(_run(probe, host, facts)), daemon=True)
    thread.start()
    thread.join(limit_s)
    part = box[0] if box else failed(f"no answer within {limit_s:g} s")
    result = ProbeResult(
        name=name,
        state=part.state,
        reason=part.reason,
        elapsed_s=time.perf_counter() - began_s,
    )
    return replace(facts, **part.fields, probes=(*facts.probes, result))


def _run(probe: Probe, host: Host, facts: MachineFacts) -> Part:
    try:
        return probe(host, facts)
    except Exception as error:  # whatever a strange machine brings is a result
        return failed(f"{type(error).__name__}: {error}")
