"""From a replica to a fleet: how much one carries in time, and how many carry the peak.

A request waits twice: in the front, one process that reads requests one by one, and in the queue
of the GPU. Both 99 % times are added, which is more than the 99 % time of the sum where the two are
independent. Replicas share the requests at random, which keeps arrivals Poisson at each of them; a
balancer that looks at the load does better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.choose.serving_size import Answered, Autoscaling, LatencyCurve, Limit
from tfdyno.model.serving.batching import Batching, choose
from tfdyno.model.serving.queue import Load, full_rate_per_s, load_at, service_times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.base.interval import Interval
    from tfdyno.core.choose.serving_size import Replica, ServingGoal, ServingOverhead
    from tfdyno.model.serving.queue import Floats

TARGET_RATIO = 0.7
"""The share of the greatest rate to aim at: starting a replica takes a minute or more, and rates
rise meanwhile."""
MOST_MACHINES = 10_000
CURVE_SHARES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
"""The shares of what a replica carries in time; rates that it cannot keep up with are left out."""
_FRONT_ROOM = 3.0
"""Times of a request in the front that the batching leaves to it."""
_BURST_RATIO = 2.0
"""What the batching has room for, over the most that the front can hand on for long."""
_NEAR_RATIO = 1.1
"""The share of what the queue alone carries in the time that the front leaves: no more is looked
for."""
_MOSTLY = 0.75
"""The share of the highest rate looked at: most often the answer is above it."""
_HALVINGS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """How one replica batches and what it carries."""

    batching: Batching
    most_per_s: float
    """Requests."""
    bound_by: Limit


def call_times(
    latency_s: Mapping[int, Interval],
    rows_per_request: int,
    overhead: ServingOverhead,
    *,
    high: bool,
) -> dict[int, float]:
    """Map a batch's requests to the seconds that it keeps the GPU's server.

    A batch of ``k`` requests has ``k * rows_per_request`` rows. Batches too large for the table are
    left out; where not even one request is in it, the table is empty.
    """
    rows = {size: one.high if high else one.best for size, one in latency_s.items()}
    times = service_times(rows)
    sizes = sorted({*rows, rows_per_request})
    return {
        size // rows_per_request: float(times[size - 1]) + overhead.call_s
        for size in sizes
        if size % rows_per_request == 0 and size <= len(times)
    }


def capacity(call_s: Mapping[int, float], host_s: float, goal: ServingGoal,
             overhead: ServingOverhead) -> Capacity:  # fmt: skip
    """Return how a replica with these times of a batch does best under the promise.

    Raises:
        ValueError: The table is empty.
    """
    within_s = goal.p99_s - _FRONT_ROOM * host_s
    if within_s <= 0.0:
        late = (
            f"The front takes {host_s * 1e3:.3g} ms to read a request, which leaves the model no "
            f"time within {goal.p99_s * 1e3:.3g} ms."
        )
        none = Batching(max_batch_size=1, max_delay_s=0.0, reason=late, holds=False)
        return Capacity(batching=none, most_per_s=0.0, bound_by="latency")
    host_most = overhead.front_most_busy_ratio / host_s
    batching = choose(call_s, within_s, enough_per_s=_BURST_RATIO * host_most)
    if not batching.holds:
        return Capacity(batching=batching, most_per_s=0.0, bound_by="latency")
    service_s = service_times(call_s)[: batching.max_batch_size]
    near = min(host_most, full_rate_per_s(service_s), _NEAR_RATIO * batching.most_per_s)
    most = _most_per_s(service_s, host_s, goal.p99_s, batching.max_delay_s, near)
    front = load_at(np.array([host_s]), most) if most else None
    waits = front is not None and front.p99_s > goal.p99_s / 2.0
    bound: Limit = "host" if waits or most >= 0.98 * host_most else "rate"
    return Capacity(batching=batching, most_per_s=most, bound_by=bound)


def answered(
    best_s: Mapping[int, float],
    high_s: Mapping[int, float],
    replica: Replica,
    rate_per_s: float,
    rows_per_request: int,
) -> Answered | None:
    """Return what a request meets at a rate; None where the replica cannot keep up."""
    limit = max(1, replica.max_batch_size // rows_per_request)
    best, high = (
        _met(service_times(times)[:limit], replica.host_s, rate_per_s, replica.max_delay_s)
        for times in (best_s, high_s)
    )
    if best is None or high is None:
        return None
    return Answered(
        rate_per_s=rate_per_s,
        p50_s=best.p50_s,
        p99_s=best.p99_s,
        p99_high_s=high.p99_s,
        busy_ratio=best.busy_ratio,
        utilisation_ratio=rate_per_s / replica.most_per_s,
        mean_batch=best.mean_batch * rows_per_request,
    )


def curve(
    best_s: Mapping[int, float],
    high_s: Mapping[int, float],
    replica: Replica,
    rows_per_request: int,
) -> LatencyCurve:
    """Return latency from a tenth of what a replica carries in time to a little beyond."""
    rates = [replica.most_per_s * share for share in CURVE_SHARES]
    met = [answered(best_s, high_s, replica, rate, rows_per_request) for rate in rates]
    found = [one for one in met if one]
    return LatencyCurve(
        gpu=replica.gpu,
        gpu_name=replica.gpu_name,
        rate_per_s=tuple(one.rate_per_s for one in found),
        p50_s=tuple(one.p50_s for one in found),
        p99_s=tuple(one.p99_s for one in found),
        p99_high_s=tuple(one.p99_high_s for one in found),
        most_per_s=replica.most_per_s,
    )


def machines_for(replica: Replica, gpus_per_machine: int, goal: ServingGoal) -> int:
    """Return machines that the peak needs, without spare ones; 0: no number is enough."""
    if replica.most_per_s <= 0.0:
        return 0
    needed = ceil(goal.peak_per_s / replica.most_per_s / gpus_per_machine)
    return needed if needed <= MOST_MACHINES else 0


def autoscaling(replica: Replica, goal: ServingGoal) -> Autoscaling:
    """Scale on requests per second of a replica, with room for a rise while another starts."""
    target = TARGET_RATIO * replica.most_per_s
    least = 1 + goal.spare_machines
    return Autoscaling(
        target_requests_per_s=target,
        min_replicas=max(least, ceil(goal.mean_per_s / target)),
        max_replicas=max(least, ceil(goal.peak_per_s / target) + goal.spare_machines),
        target_utilisation_ratio=TARGET_RATIO,
        max_batch_size=replica.max_batch_size,
        max_delay_s=replica.max_delay_s,
        p99_s=goal.p99_s,
    )


def _most_per_s(
    service_s: Floats, host_s: float, p99_s: float, delay_s: float, highest: float
) -> float:
    low, high = 0.0, highest
    if _in_time(service_s, host_s, high, delay_s, p99_s):
        return high
    if _in_time(service_s, host_s, _MOSTLY * high, delay_s, p99_s):
        low = _MOSTLY * high
    for _ in range(_HALVINGS if low else 2 * _HALVINGS):
        middle = (low + high) / 2.0
        if _in_time(service_s, host_s, middle, delay_s, p99_s):
            low = middle
        else:
            high = middle
    return low


def _in_time(
    service_s: Floats, host_s: float, rate_per_s: float, delay_s: float, p99_s: float
) -> bool:
    met = _met(service_s, host_s, rate_per_s, delay_s)
    return met is not None and met.p99_s <= p99_s


def _met(service_s: Floats, host_s: float, rate_per_s: float, delay_s: float) -> Load | None:
    """Return the queue of the GPU with the front before it."""
    front = load_at(np.array([host_s]), rate_per_s)
    queue = load_at(service_s, rate_per_s, delay_s) if front else None
    if front is None or queue is None:
        return None
    return replace(
        queue,
        p50_s=queue.p50_s + front.p50_s,
        p99_s=queue.p99_s + front.p99_s,
        mean_s=queue.mean_s + front.mean_s,
    )
