"""Stretches of load made up by hand, for tests of what follows from them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.measure.load import LoadPlan, LoadResult, LoadStage, ServerFacts, StageRun
from tfdyno.model.measure.load_figures import stage_figures

if TYPE_CHECKING:
    from collections.abc import Sequence

SERVER = ServerFacts(
    route="tensorflow-serving", model="cnn", version="3", platform="tiny",
    inputs=("image float32[-1,28,28,1]",), processes=("41@1.00",),
)  # fmt: skip


def stretch(latencies_s: Sequence[float], **changes: Any) -> StageRun:
    """Requests that start every 10 ms from 0 on, in 1 s without a warm-up unless told."""
    count = len(latencies_s)
    run = StageRun(
        plan=LoadPlan(clients=4, seconds_s=count * 0.01, warmup_s=0.0),
        began_at="2026-11-23T12:00:00+00:00",
        length_s=count * 0.01,
        start_s=tuple(at * 0.01 for at in range(count)),
        latency_s=tuple(latencies_s),
        codes=(200,) * count,
        client_cpu_s=0.1,
    )
    return replace(run, **changes)


def stage(run: StageRun, *, holds: bool | None = None, usd_per_h: float | None = None) -> LoadStage:
    """With its figures."""
    return LoadStage(run=run, figures=stage_figures(run, usd_per_h=usd_per_h), holds=holds)


def result(*stages: LoadStage, **changes: Any) -> LoadResult:
    """A test of these stretches."""
    found = LoadResult(
        url="http://127.0.0.1:8501/v1/models/cnn", server=SERVER, stages=stages,
        machine="2 CPUs (a CPU)", made_at="2026-11-23T12:00:00+00:00", tfdyno="0.1.0",
    )  # fmt: skip
    return replace(found, **changes)


def search() -> LoadResult:
    """A search with a knee at 200 requests/s and batches."""
    latencies = [0.004 + 0.00001 * (at * 37 % 100) for at in range(400)]
    plan = LoadPlan(kind="open", rate_per_s=100.0, seconds_s=4.0, warmup_s=0.0)
    closed = stretch(latencies, batches={1: 10, 2: 20, 4: 30}, batch_rows=170, batch_count=60)
    slower = [value * 3 for value in latencies]
    slowest = [value * 30 for value in latencies]
    return result(
        stage(closed, usd_per_h=0.5),
        stage(replace(closed, plan=plan), holds=True, usd_per_h=0.5),
        stage(replace(closed, plan=replace(plan, rate_per_s=400.0), latency_s=tuple(slowest)),
              holds=False, usd_per_h=0.5),
        stage(replace(closed, plan=replace(plan, rate_per_s=200.0), latency_s=tuple(slower)),
              holds=True, usd_per_h=0.5),
        p99_limit_s=0.02, knee_rate_per_s=200.0, usd_per_h=0.5,
    )  # fmt: skip
