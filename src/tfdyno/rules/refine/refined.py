"""Second thoughts: matches of a log seen together with the machine, group by group.

A refiner is a pure function. It may add matches, drop some, or replace a
cause by a better one; it never reads files and never raises for what a log holds.
"""

from __future__ import annotations

from collections.abc import Callable

from tfdyno.core.choose.software import Knowledge
from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.rules.log.explained import LogFacts
from tfdyno.rules.match import Match
from tfdyno.rules.refine.code import refine_code
from tfdyno.rules.refine.driver import refine_driver
from tfdyno.rules.refine.gpu import refine_gpu, refine_no_gpu
from tfdyno.rules.refine.libraries import refine_libraries
from tfdyno.rules.refine.memory import refine_memory
from tfdyno.rules.refine.packages import refine_packages

Refiner = Callable[[tuple[Match, ...], LogFacts, MachineFacts, Knowledge], tuple[Match, ...]]

REFINERS: tuple[Refiner, ...] = (
    refine_libraries,
    refine_driver,
    refine_gpu,
    refine_code,
    refine_memory,
    refine_packages,
    refine_no_gpu,
)
"""The refiners in the order in which they run; each sees what the one before it left."""


def refine(
    matches: tuple[Match, ...], log: LogFacts, facts: MachineFacts, knowledge: Knowledge
) -> tuple[Match, ...]:
    """Run all refiners over the matches of a log."""
    for one in REFINERS:
        matches = one(matches, log, facts, knowledge)
    return matches
