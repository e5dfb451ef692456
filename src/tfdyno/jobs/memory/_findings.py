"""What is wrong with the memory of a step, as findings: fragments, and that nothing fits."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import find
from tfdyno.core.base.units import format_bytes
from tfdyno.core.doctor.finding import Evidence, Finding
from tfdyno.rules.causes import cause
from tfdyno.rules.match import Match
from tfdyno.rules.wording import finding
from tfdyno.words.base.amounts import of_gib
from tfdyno.words.memory.plan import weighed_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfdyno.core.choose.memory_map import AllocatorNeed, CardMemory
    from tfdyno.core.choose.memory_plan import MemoryPlan
    from tfdyno.core.choose.workload import Trace

FRAGMENTED, NOTHING_FITS = "mem.fragmented", "mem.nothing_fits"


def memory_findings(
    cards: Sequence[CardMemory], plans: Sequence[MemoryPlan], trace: Trace
) -> Iterator[Finding]:
    """Yield all findings."""
    needs = (one.map.allocator for one in cards)
    yield from (_fragments(need) for need in needs if need and need.is_fragmented)
    yield from (_nothing_fits(plan, trace) for plan in plans if plan.chosen is None)


def _fragments(need: AllocatorNeed) -> Finding:
    """Say that one step alone does not fit for its fragments, by the allocator's own rules."""
    free, piece = format_bytes(need.free_bytes), format_bytes(need.largest_free_bytes)
    text = f"{format_bytes(need.failed_bytes)} are asked for, {free} are free, the largest piece "
    match = Match(
        cause=FRAGMENTED,
        verdict="likely",
        evidence=(Evidence(text=f"{text}{piece}", source="one step replayed by the allocator's "
                           "rules from an empty pool"),),
        basis="facts",
        values={"free": free, "piece": piece, "memory": "gpu", "system": "linux"},
    )  # fmt: skip
    return finding(cause(FRAGMENTED), match, {})


def _nothing_fits(plan: MemoryPlan, trace: Trace) -> Finding:
    assert plan.closest is not None
    least = plan.closest.option
    words = of_gib(least.device_memory_bytes.best, least.usable_memory_bytes)
    match = Match(
        cause=NOTHING_FITS,
        verdict="proven" if least.verified else "likely",
        evidence=(
            Evidence(text=f"{weighed_words(plan)}; the closest needs {words}",
                     source="estimate"),
        ),
        basis="facts",
        values={
            "workload": trace.title,
            "card": find(plan.gpu).name,
            "least": words,
            "reference": shlex.quote(trace.workload.reference),
        },
    )  # fmt: skip
    return finding(cause(NOTHING_FITS), match, {})
