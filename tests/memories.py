"""Answers of ``tfdyno memory`` of a few numbers, for tests of what is made of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.advice import estimate
from tests.choices import option
from tests.view.answers import trace

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.memory_answer import MemoryAnswer
from tfdyno.core.choose.memory_map import (
    AllocatorNeed,
    CardMemory,
    HeldTensor,
    LayerMemory,
    MemoryMap,
    Moment,
)
from tfdyno.core.choose.memory_plan import MemoryPlan, PlannedOption
from tfdyno.core.doctor.finding import Evidence, Finding, FixStep
from tfdyno.core.recipe.recipe import Recipe

GIB = 2.0**30
NAMES = {"card": "NVIDIA Card", "other": "Other card"}
NEED = AllocatorNeed(
    largest_request_bytes=GIB,
    requested_peak_bytes=3.9 * GIB,
    in_use_peak_bytes=4 * GIB,
    footprint_bytes=5 * GIB,
    pool_bytes=6 * GIB,
    free_bytes=2 * GIB,
    largest_free_bytes=1.5 * GIB,
)


def held(**changes: Any) -> HeldTensor:
    """2 GiB of a convolution, alive in the first half of the step."""
    base = HeldTensor(
        name="relu", layer="conv1", part="activations", dtype="f32", shape=(64, 112, 112, 64),
        held_bytes=2 * GIB, first_share=0.1, last_share=0.5,
    )  # fmt: skip
    return replace(base, **changes)


def memory_map(**changes: Any) -> MemoryMap:
    """4 GiB at the peak in the middle of the step, half of it in conv1."""
    weights = held(name="conv1/kernel", part="weights", shape=(3, 3, 64, 64), held_bytes=GIB,
                   first_share=0.0, last_share=1.0)  # fmt: skip
    base = MemoryMap(
        batch_size=100,
        execution="xla",
        moments=tuple(
            Moment(share=share, live_bytes=amount * GIB,
                   parts_bytes={"weights": GIB, "activations": (amount - 1) * GIB})
            for share, amount in ((0.0, 1.5), (0.5, 4.0), (1.0, 1.25))
        ),
        peak_share=0.5,
        peak_bytes=4 * GIB,
        peak_layer="head",
        peak_phase="backward",
        parts_bytes={"weights": GIB, "activations": 3 * GIB},
        tensors=(held(), weights),
        layers=(
            LayerMemory(layer="conv1", held_bytes=3 * GIB, tensor_count=2, parts_bytes={}),
            LayerMemory(layer="", held_bytes=GIB, tensor_count=1, parts_bytes={}),
        ),
        held_count=3,
        temporary_bytes=3 * GIB,
    )  # fmt: skip
    return replace(base, **changes)


def planned(
    milliseconds: float = 10.0, gibibytes: float = 1.0, ratio: float = 1.0, **changes: Any
) -> PlannedOption:
    """An option on a card of 2 GiB with its ratio, good to 10 %."""
    differently = changes.pop("learns_differently", ())
    return PlannedOption(
        option=option(milliseconds, gibibytes, **changes),
        time_ratio=Interval(low=0.9 * ratio, best=ratio, high=1.1 * ratio),
        learns_differently=differently,
    )


def plan(**changes: Any) -> MemoryPlan:
    """3 GiB as it is; float16 in two parts is chosen, float16 in four is safe."""
    chosen = planned(10.4, 1.8, 1.04, precision="mixed_float16", batch_size=16, accumulation=2)
    safe = planned(11.0, 1.0, 1.1, precision="mixed_float16", batch_size=8, accumulation=4)
    base = MemoryPlan(
        gpu="card",
        samples=32,
        base=replace(planned(10.0, 3.0), time_ratio=Interval(low=1.0, best=1.0, high=1.0)),
        options=(chosen, safe),
        chosen=chosen,
        safe=safe,
        recipe=Recipe(precision="mixed_float16", batch_size=16, accumulation=2),
        reasons={"precision": "Half.", "batch_size": "Too much.", "accumulation": "So many."},
        notes=("Nothing was measured.",),
        weighed=12,
    )
    return replace(base, **changes)


def unfit() -> MemoryPlan:
    """Nothing fits; the closest is 0.5 GiB too large."""
    closest = planned(12.0, 2.5, 1.2, remat="blocks", recompute_ratio=1.2)
    return plan(options=(), chosen=None, safe=None, closest=closest, recipe=None, reasons={})


FINDING = Finding(
    cause="mem.nothing_fits",
    verdict="likely",
    severity="error",
    summary="Nothing fits.",
    why="It is large.",
    evidence=(Evidence(text="12 options were weighed", source="estimate"),),
    fix=(FixStep(text="Take another.", command="tfdyno advise model.py"),),
)


def answer(*plans: MemoryPlan, **changes: Any) -> MemoryAnswer:
    """One card, with these plans."""
    card = CardMemory(estimate=estimate(made_by={"time": "quick", "memory": "quick"}),
                      map=memory_map())  # fmt: skip
    base = MemoryAnswer(
        cards=(card,), names=NAMES, trace=trace(), batch_source="as asked", plans=plans
    )
    return replace(base, **changes)
