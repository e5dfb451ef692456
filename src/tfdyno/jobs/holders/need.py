"""What a run takes of a card, where that is estimated at no cost: from a trace that is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.base.settings import PRECISIONS

if TYPE_CHECKING:
    from tfdyno.core.base.interval import Interval
    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.recipe.recipe import Recipe


def known_need(workload: Workload, recipe: Recipe, visible: str | None) -> Interval | None:
    """Return bytes of a card that TensorFlow would take with memory growth; None: nothing is kept.

    Only where one card trains: a batch that is shared among several is another question. What a
    recipe holds back or computes again to a budget (``remat = "8GiB"``, ``ema``, float8) is not in
    the estimate.

    Args:
        workload: What would run.
        recipe: Its settings.
        visible: ``CUDA_VISIBLE_DEVICES`` of the run; None: all cards.
    """
    from tfdyno.jobs.choose import estimate as estimating
    from tfdyno.jobs.choose.trace import kept_trace
    from tfdyno.jobs.holders.found_cards import found_cards

    if recipe.remat_budget_bytes or recipe.ema or recipe.precision == "float8":
        return None
    try:
        found = found_cards(visible=visible)
        traced = kept_trace(replace(workload, remat=recipe.remat)) if found else None
        if traced is None or recipe.replica_count(len(found)) > 1:
            return None
        asked = estimating.EstimateRequest(
            workload=traced,
            gpus=(found[0].gpu,),
            batch_size=recipe.batch_size,
            precision=recipe.precision if recipe.precision in PRECISIONS else "",
            execution="" if recipe.execution == "auto" else recipe.execution,
            route="quick",
            verify=False,
        )
        answer = estimating.estimate(asked).estimates[0]
    except TfdynoError:  # a slice, a card that is not in the catalogue, a batch that cannot be
        return None
    return answer.process_memory_bytes or answer.device_memory_bytes
