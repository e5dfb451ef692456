"""Memory of sharded steps from XLA, in place of the formula's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError
from tfdyno.jobs.choose.compile import compile_sharded
from tfdyno.jobs.choose.predict import family_name
from tfdyno.model.time.sharding import held_beside, planned
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.sharding import Sharding, ShardingPlan
    from tfdyno.jobs.choose.trace import Traced

NO_SWITCH = "pipeline"
"""What a partitioner of arrays cannot make of a step."""


def compiled_sharding(
    told: Sharding,
    one: Estimate,
    gpu: Gpu,
    bytes_per_s: Mapping[int, float],
    *,
    traced: Traced,
    progress: Callable[[str], None],
) -> Sharding:
    """Return the ways of a card with memory from the compiler, where it can make them.

    Where XLA's plan is larger than the formula's and does not fit, more cards are tried. A way that
    it refuses, or whose samples do not divide evenly, keeps its formula.

    Args:
        told: By formula.
        one: Of one card.
        gpu: The card.
        bytes_per_s: Number of cards -> bus bandwidth between them.
        traced: The step.
        progress: Called with a line at every stage.
    """

    def held_bytes(plan: ShardingPlan) -> float | None:
        if plan.kind == NO_SWITCH or one.batch_size % plan.replicas:
            return None
        try:
            return compile_sharded(
                traced, gpu=gpu, family=family_name(gpu), batch_size=one.batch_size,
                kind=plan.kind, cards=plan.replicas, progress=progress,
            )  # fmt: skip
        except ToolError as error:
            progress(say("{kind} keeps its formula: {error}", kind=plan.kind, error=error))
            return None

    found = []
    for first in told.plans:
        plan = first
        while (held := held_bytes(plan)) is not None:
            device = held + held_beside(one, held)
            fits = device <= one.usable_memory_bytes
            plan = replace(plan, device_memory_bytes=device, fits=fits, memory_by="compiler")
            more = next((n for n in sorted(bytes_per_s) if n > plan.replicas), None)
            if fits or more is None:
                break
            plan = planned(one, plan.kind, more, bytes_per_s[more])
        found.append(plan)
    order = sorted(found, key=lambda plan: (not plan.fits, plan.replicas, plan.step_s.best))
    return replace(told, plans=tuple(order))
