"""Estimates, offers and candidates of a few numbers, for tests of what is made of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.advice import Candidate, Run
from tfdyno.core.choose.estimate import Estimate
from tfdyno.core.choose.hardware import Offer

GIB = 2.0**30


def exactly(value: float) -> Interval:
    return Interval(low=value, best=value, high=value)


def around(value: float) -> Interval:
    """20 % down and 25 % up."""
    return Interval(low=value * 0.8, best=value, high=value * 1.25)


def estimate(**changes: Any) -> Estimate:
    """A step of 0.1 s at batch 100, 10 of 80 GiB, without a compile time."""
    base = Estimate(
        gpu="card",
        replicas=1,
        link="",
        batch_size=100,
        global_batch_size=100,
        mode="train",
        precision="mixed_float16",
        execution="xla",
        step_s=exactly(0.1),
        samples_per_s=exactly(1000.0),
        peak_memory_bytes=exactly(9 * GIB),
        memory_parts_bytes={"weights": GIB, "activations": 8 * GIB, "context": GIB},
        context_bytes=GIB,
        device_memory_bytes=exactly(10 * GIB),
        usable_memory_bytes=80 * GIB,
        fits="yes",
        max_batch_size=800,
        max_batch_verified=False,
        bound_by="memory",
        terms_s={"compute": 0.03, "memory": 0.07},
        flops_per_step=1e12,
        mfu_ratio=0.25,
        energy_j_per_step=exactly(30.0),
        compile_s=exactly(0.0),
        made_by={"time": "quick", "memory": "exact"},
        compiled_for="8.x",
    )
    return replace(base, **changes)


def offer(gpu: str = "card", usd_per_h: float = 1.0, **changes: Any) -> Offer:
    base = Offer(
        slug=f"cloud/{gpu}/here/on_demand",
        provider="cloud",
        instance=gpu,
        region="here",
        gpu_slug=gpu,
        gpu_count=1,
        gpu_fraction=1.0,
        vcpus=8,
        ram_bytes=64 * GIB,
        usd_per_h=usd_per_h,
        spot=False,
        priced_on="2026-10",
        date_precision="month",
        source="a price list",
    )
    made = replace(base, **changes)
    return replace(made, slug=f"{made.slug}-spot") if made.spot else made


def candidate(
    name: str = "Card", hours: float = 10.0, usd: float | None = 10.0, **changes: Any
) -> Candidate:
    """A feasible candidate on an offer of the price that gives ``usd`` in ``hours``."""
    gpu = name.lower()
    base = Candidate(
        gpu=gpu,
        gpu_name=name,
        count=1,
        offer=None if usd is None else offer(gpu, usd / hours),
        estimate=estimate(gpu=gpu),
        steps=1000,
        hours=around(hours),
        cost_usd=None if usd is None else around(usd),
        usd_per_epoch=None,
        energy_kwh=exactly(1.0),
        verdict="no offer" if usd is None else "feasible",
        tensorflow="native: TensorFlow 2.21 has machine code for this GPU",
        reason="",
        pareto=False,
    )
    return replace(base, **changes)


def run(**changes: Any) -> Run:
    base = Run(
        steps=1000,
        samples=100_000,
        samples_per_epoch=50_000,
        epochs=2,
        deadline_h=0.0,
        budget_usd=0.0,
        scenario="research",
        holds="batch per replica",
        length_source="as asked",
    )
    return replace(base, **changes)
