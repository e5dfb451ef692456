"""The terms of a kernel's price, each with the numbers that it was worked out from."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Literal, NamedTuple

from tfdyno.core.choose.explanation import Factor, Peak, Term
from tfdyno.core.choose.hardware import Gpu
from tfdyno.core.choose.time_model import TimeModel
from tfdyno.model.time import step
from tfdyno.model.time.kernel_table import LIBRARY_KINDS
from tfdyno.model.time.kernel_time import Targets, on_tensor_cores, peak_unit, route_of
from tfdyno.model.time.parts import memory_parts, overlap_parts
from tfdyno.model.time.peaks import peak_flops_per_s

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.model.time.kernel_table import CostClass
    from tfdyno.model.time.parts import Part
    from tfdyno.model.time.peaks import Unit

BANDWIDTH = "bandwidth"
LAUNCH_CONSTANT = "t_launch"


class Work(NamedTuple):
    """Work of like kernels together."""

    launches: float
    flops: float
    """Useful ones."""
    executed_flops: float
    """FLOPs with those that part-filled tiles waste."""
    traffic_bytes: float
    extra_bytes: float
    """Read again because windows overlap."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pricing:
    """One card, one setting and the constants: what prices a kernel."""

    gpu: Gpu
    tf32_allowed: bool
    cards: Targets
    """The targets of this card alone."""
    setting: step.Setting
    time_model: TimeModel


def terms_of(cost_class: CostClass, work: Work, pricing: Pricing) -> tuple[Term, ...]:
    """Price the work of one class of kernel, term by term; terms of nothing are left out."""
    found = (
        _compute(cost_class, work, pricing),
        _memory(cost_class, work, pricing),
        _overlap(cost_class, work, pricing),
        launched(work, pricing.time_model, LAUNCH_CONSTANT, _execution("launches", pricing)),
    )
    return tuple(term for term in found if term and term.amount > 0.0)


def route_name(cost_class: CostClass, pricing: Pricing) -> str:
    """Return how the arithmetic of a class is done; empty where bytes alone are priced."""
    chosen = route_of(cost_class, pricing.cards, pricing.time_model)
    return chosen[0].name if chosen else ""


def peak_of(name: str, pricing: Pricing) -> Peak:
    """Return a rate of the card's data sheet by the name that a term gives it."""
    gpu = pricing.gpu
    if name == BANDWIDTH:
        return Peak(
            name=name, rate_per_s=gpu.memory_bytes_per_s, unit="B", sm_count=0,
            flops_per_clock=0.0, clock_hz=0.0, held_ratio=1.0, held_source="", source=gpu.source,
        )  # fmt: skip
    slug, model = gpu.slug.split(":")[0], pricing.time_model
    unit: Unit = name  # type: ignore[assignment]  # written by _compute from a Unit
    held = model.sustained_clock.get(slug, 1.0)
    return Peak(
        name=name,
        rate_per_s=held * peak_flops_per_s(gpu, unit),
        unit="FLOP",
        sm_count=gpu.sm_count,
        flops_per_clock=getattr(gpu.rates, f"{name}_per_clock"),
        clock_hz=gpu.tensor_clock_hz if name.endswith("_tensor") else gpu.boost_hz,
        held_ratio=held,
        held_source=model.sustained_clock_source.get(slug, ""),
        source=f"{gpu.source}; rates of {gpu.compute_capability}: {gpu.rates.source}",
    )


def factors_of(parts: Iterable[Part]) -> tuple[Factor, ...]:
    """Return parts of a price on one card as factors of an explanation."""
    return tuple(
        Factor(name=part.name, constant=part.constant, factor_ratio=float(part.factor))
        for part in parts
        if part.constant or float(part.factor) != 1.0
    )


def _compute(cost_class: CostClass, work: Work, pricing: Pricing) -> Term | None:
    chosen = route_of(cost_class, pricing.cards, pricing.time_model)
    if chosen is None or not work.flops:
        return None
    route, rate_per_s = chosen
    own = peak_unit(pricing.gpu, cost_class.dtype, tf32_allowed=pricing.tf32_allowed)
    wasted = work.executed_flops / work.flops
    slower = _execution("depthwise", pricing) if cost_class.shape == "depthwise" else ()
    tiles = Factor(name="part-filled tiles", constant="", factor_ratio=wasted)
    return rated(
        "compute",
        work.flops,
        more=(*((tiles,) if wasted != 1.0 else ()), *slower),
        peak=own if route.peak == "unit" else "fp32",
        rate_per_s=rate_per_s,
        shares=(*factors_of(route.parts), *_library(cost_class, pricing)),
    )


def _memory(cost_class: CostClass, work: Work, pricing: Pricing) -> Term:
    shares = factors_of(memory_parts(cost_class, pricing.time_model))
    return rated(
        "memory",
        work.traffic_bytes,
        more=_traffic(cost_class, pricing),
        peak=BANDWIDTH,
        rate_per_s=pricing.gpu.memory_bytes_per_s,
        shares=(*shares, *_library(cost_class, pricing)),
    )


def _overlap(cost_class: CostClass, work: Work, pricing: Pricing) -> Term | None:
    """Return the term of windows alone: no library kernel reads more than once."""
    if cost_class.kind in LIBRARY_KINDS:
        return None
    again = overlap_parts(cost_class, pricing.time_model)
    return rated(
        "overlap",
        work.extra_bytes,
        more=(
            *factors_of(again),
            *_execution("overlap", pricing),
            *_traffic(cost_class, pricing),
        ),
        peak=BANDWIDTH,
        rate_per_s=pricing.gpu.memory_bytes_per_s,
        shares=factors_of(memory_parts(cost_class, pricing.time_model)),
    )


def launched(work: Work, model: TimeModel, each: str, more: tuple[Factor, ...] = ()) -> Term:
    """Return the term of launches that take the constant ``each``."""
    return Term(
        cause="launch",
        amount=work.launches,
        unit="launches",
        more=more,
        peak="",
        rate_per_s=0.0,
        shares=(),
        each_s=model[each],
        each=each,
        time_s=work.launches * _multiplied(more) * model[each],
    )


def rated(
    cause: Literal["compute", "memory", "overlap"],
    amount: float,
    *,
    more: tuple[Factor, ...] = (),
    peak: str,
    rate_per_s: float,
    shares: tuple[Factor, ...],
    time_s: float | None = None,
) -> Term:
    """Return the term of work at a rate; without ``time_s`` its factors say how long it takes."""
    if time_s is None:
        time_s = amount * _multiplied(more) / (rate_per_s * _multiplied(shares))
    return Term(
        cause=cause,
        amount=amount,
        unit="FLOP" if cause == "compute" else "B",
        more=more,
        peak=peak,
        rate_per_s=rate_per_s,
        shares=shares,
        each_s=0.0,
        each="",
        time_s=time_s,
    )


def _library(cost_class: CostClass, pricing: Pricing) -> tuple[Factor, ...]:
    """Return what the execution does to the rate of a library kernel; nothing for the others."""
    fields = _that_apply(step.rate_fields(cost_class), cost_class, pricing)
    return tuple(factor for field in fields for factor in _execution(field, pricing))


def _traffic(cost_class: CostClass, pricing: Pricing) -> tuple[Factor, ...]:
    """Return what the execution does to the bytes of a class."""
    fields = _that_apply((step.traffic_field(cost_class),), cost_class, pricing)
    return tuple(factor for field in fields for factor in _execution(field, pricing))


def _that_apply(
    fields: tuple[str, ...], cost_class: CostClass, pricing: Pricing
) -> tuple[str, ...]:
    """Leave out those that matter on tensor cores alone, where the class is not done on them."""
    if on_tensor_cores(cost_class, pricing.cards).all():
        return fields
    return tuple(field for field in fields if field not in step.TENSOR_CORES_ONLY)


def _execution(field: str, pricing: Pricing) -> tuple[Factor, ...]:
    """Return what the execution does to library rates, to fusions' traffic, or to launches."""
    constant = step.factor_names(pricing.setting).get(field)
    if constant is None:
        return ()
    words = {
        "library": "library rate, this execution",
        "convolution": "16-bit 1×1 or 3×3, this execution",
        "fusion": "traffic, this execution",
        "depthwise": "depthwise kernel, this execution",
        "overlap": "windows read again, this execution",
        "layout": "order of dimensions changed",
        "launches": "launches, this execution",
        "update": "optimizer operation by operation",
    }
    value = pricing.time_model[constant]
    return (Factor(name=words[field], constant=constant, factor_ratio=value),)


def _multiplied(factors: tuple[Factor, ...]) -> float:
    return prod(one.factor_ratio for one in factors)
