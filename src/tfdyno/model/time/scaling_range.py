"""How far a predicted weak-scaling efficiency may be off.

What is predicted is a delay beside the step alone. It may be off by a factor, so the range is wide
where the exchange decides and narrow where it does not. ::

    delay = 1 / efficiency - 1
    low   = exp(-EVEN_LOSS * w) / (1 + delay * exp(w))
    high  = exp(+EVEN_LOSS * w) / (1 + delay * exp(-w))
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Interval

if TYPE_CHECKING:
    from tfdyno.core.choose.time_model import Constants
    from tfdyno.core.choose.workload import Trace

EVEN_LOSS = 0.03
"""Scatter where nothing is lost, for a width of 1: with the width in use on one node, some 1.3,
about the 3.6 % that nine of ten published runs lie around the mean of their repeats, at
efficiencies above 0.9."""
_SIXTEEN_BITS = ("mixed_float16", "mixed_bfloat16", "float16", "bfloat16")


def efficiency_ends(efficiency_ratio: float, width: float) -> tuple[float, float]:
    """Return low and high end of an efficiency; the high one may lie above 1, as measured ones do.

    Args:
        efficiency_ratio: Predicted, above 0.
        width: Logarithm of the factor by which the delay may be off.
    """
    delay = max(0.0, 1.0 / efficiency_ratio - 1.0)
    even, factor = math.exp(EVEN_LOSS * width), math.exp(width)
    return 1.0 / even / (1.0 + delay * factor), even / (1.0 + delay / factor)


def efficiency_range(
    efficiency_ratio: float, constants: Constants, *, nodes: int = 1, unexplained: bool = False
) -> Interval:
    """Return the 90 % interval of an efficiency, not above 1.

    Args:
        efficiency_ratio: Predicted.
        constants: Global constants of the time model.
        nodes: Of several more is not known: other traffic, slow storage.
        unexplained: Of a run of the kind that ``loses_more`` names: the low end reaches down.
    """
    best = min(1.0, efficiency_ratio)
    width = constants["allreduce_width_nodes" if nodes > 1 else "allreduce_width"]
    low, high = efficiency_ends(best, width)
    if unexplained:
        low = min(low, best * constants["allreduce_half"])
    return Interval(low=min(low, best), best=best, high=min(1.0, high))


def loses_more(trace: Trace, policy: str, execution: str) -> bool:
    """Return whether published runs of this kind lost more than their exchange explains.

    Networks with batch normalisation, as a graph in 16 bits: 0.5 to 0.8 of what one GPU does,
    over every link.

    Args:
        trace: What was traced.
        policy: Precision that is estimated; empty: the trace's own.
        execution: xla, graph, or another program.
    """
    normalised = any("moving_variance" in one.name for one in trace.tensors)
    return execution == "graph" and (policy or trace.policy) in _SIXTEEN_BITS and normalised
