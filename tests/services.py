"""A service of a few numbers, for tests of what is made of it."""

from __future__ import annotations

from typing import Any

from tests.advice import offer

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.serving_size import (
    Answered,
    Autoscaling,
    LatencyCurve,
    Replica,
    ServingCandidate,
    ServingGoal,
    ServingPick,
    ServingSize,
    Title,
)

GOAL = ServingGoal(requests_per_day=8_640_000, p99_s=0.05)
"""100 requests per second, 300 at the peak."""
SLOW = "on Old, a batch of one request takes up to 90 ms."


def answered(p99_s: float) -> Answered:
    return Answered(
        rate_per_s=150.0, p50_s=p99_s / 2, p99_s=p99_s, p99_high_s=p99_s * 1.2, busy_ratio=0.5,
        utilisation_ratio=0.75, mean_batch=3.0,
    )  # fmt: skip


def replica(gpu: str = "card", **changes: Any) -> Replica:
    given: dict[str, Any] = {
        "gpu": gpu, "gpu_name": gpu.title(),
        "latency_s": {1: Interval(low=0.004, best=0.005, high=0.006)},
        "latency_source": "estimated", "max_batch_size": 8, "max_delay_s": 0.0025,
        "most_per_s": 200.0, "host_s": 0.0003, "bound_by": "rate", "reason": "A reason.",
    }  # fmt: skip
    return Replica(**(given | changes))


def candidate(gpu: str, usd_per_h: float, p99_s: float, machines: int = 2,
              **changes: Any) -> ServingCandidate:  # fmt: skip
    month = usd_per_h * 730 * machines
    given: dict[str, Any] = {
        "replica": replica(gpu), "offer": offer(gpu, usd_per_h), "machines": machines,
        "count": machines, "at_peak": answered(p99_s), "at_mean": answered(p99_s * 0.8),
        "usd_per_month": month, "usd_per_million": month / 262.8, "verdict": "feasible",
        "reason": "a row", "pareto": True,
    }  # fmt: skip
    return ServingCandidate(**(given | changes))


CHEAP, QUICK = candidate("cheap", 0.5, 0.040), candidate("quick", 3.0, 0.020)
LATE = candidate(
    "old", 0.1, 0.0, machines=0, at_peak=None, at_mean=None, usd_per_month=None,
    usd_per_million=None, verdict="too slow", pareto=False,
    replica=replica("old", most_per_s=0.0, reason=SLOW, bound_by="latency"), reason=SLOW[:-1],
)  # fmt: skip


PICKED: tuple[tuple[Title, ServingCandidate], ...] = (
    ("cheapest", CHEAP), ("balanced", CHEAP), ("fastest", QUICK)
)  # fmt: skip


def size(**changes: Any) -> ServingSize:
    given: dict[str, Any] = {
        "title": "small", "reference": "model.keras", "headline": "Rent 2 x Cheap.", "goal": GOAL,
        "precision": "float32", "execution": "graph", "ranking": (CHEAP, QUICK, LATE),
        "picks": tuple(
            ServingPick(title=title, candidate=one, reason=f"the {title}")
            for title, one in PICKED
        ),
        "autoscaling": Autoscaling(
            target_requests_per_s=140.0, min_replicas=1, max_replicas=3,
            target_utilisation_ratio=0.7, max_batch_size=8, max_delay_s=0.0025, p99_s=0.05,
        ),
        "assumptions": {"month": "730 h"}, "sources": ("a <source>",), "notes": ("A note.",),
        "curves": (
            LatencyCurve(gpu="cheap", gpu_name="Cheap", rate_per_s=(10.0, 200.0),
                         p50_s=(0.006, 0.02), p99_s=(0.01, 0.04), p99_high_s=(0.012, 0.05),
                         most_per_s=200.0),
        ),
        "catalogue_date": "2026-01", "made_on": "2026-11-23",
    }  # fmt: skip
    return ServingSize(**(given | changes))
