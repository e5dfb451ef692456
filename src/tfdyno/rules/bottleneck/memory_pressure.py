"""Memory that is nearly used up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.rules.bottleneck.draft import Draft, evidence, percent
from tfdyno.rules.bottleneck.tables import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.rules.bottleneck.seen import Seen


def near_limit(seen: Seen) -> Iterator[Draft]:
    """Find a run that the next larger batch, or a fragment that does not fit, would end."""
    facts = seen.facts
    if facts.memory_limit_bytes <= 0:
        return
    used = facts.memory_used_bytes / facts.memory_limit_bytes
    if used < limits()[f"near_limit_{facts.device}_ratio"]:
        return
    told = evidence(f"{format_bytes(facts.memory_used_bytes)} of "
                    f"{format_bytes(facts.memory_limit_bytes)} are used", "memory")  # fmt: skip
    settings = {}
    is_even = facts.batch_size > 1 and facts.batch_size % 2 == 0
    if facts.device == "gpu" and is_even and facts.replica_count == 1:
        # Keras cannot accumulate under a strategy.
        settings = {"batch_size": str(facts.batch_size // 2), "accumulation": "2"}
    yield Draft(cause="memory_pressure.near_limit", evidence=(told,), settings=settings,
                values={"used": percent(used), "device": facts.device})  # fmt: skip


MEMORY_PRESSURE_RULES = (near_limit,)
