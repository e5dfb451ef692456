"""The answer of ``tfdyno memory``: what a step holds, what a log says, how to make it fit."""

from __future__ import annotations

from dataclasses import dataclass

from tfdyno.core.choose.memory_map import CardMemory
from tfdyno.core.choose.memory_plan import MemoryPlan
from tfdyno.core.choose.workload import Trace
from tfdyno.core.doctor.finding import Diagnosis, Finding
from tfdyno.core.doctor.oom import OomReport


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAnswer:
    """What was found."""

    cards: tuple[CardMemory, ...] = ()
    names: dict[str, str]
    """Marketing name of each card by its slug."""
    trace: Trace | None = None
    """None: no workload was named, only a log."""
    batch_source: str = ""
    """Who named the batch, in words."""
    plans: tuple[MemoryPlan, ...] = ()
    """One for each card, or none where none was asked for."""
    log: Diagnosis | None = None
    oom: OomReport | None = None
    """The log's report of exhausted memory, where it holds one."""
    findings: tuple[Finding, ...] = ()
    """Findings about the log, the memory of the step, and the plans."""
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 where a finding is an error."""
        return int(any(one.severity == "error" for one in self.findings))
