"""Energy of a step and the time that XLA needs to compile it: simple rules with wide intervals."""

from __future__ import annotations

import math
import operator
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import NOTHING, Interval
from tfdyno.model.time.kernel_table import LIBRARY_KINDS, kept_by_kernels

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.choose.program import Kernel
    from tfdyno.core.choose.time_model import TimeModel

HALF = ("f16", "bf16")

JOULES_PER_KWH = 3.6e6


def step_energy_j(
    *, step_s: Interval, compute_s: float, memory_s: float, tdp_w: float, model: TimeModel
) -> Interval:
    """Predict the energy that one card draws in a step.

    The card draws a share of its TDP that depends on what it does: computing, moving bytes or
    waiting (``power_*`` constants); the shares' own ranges widen the interval.

    Args:
        step_s: Time of the step.
        compute_s: Part of the best time that computes.
        memory_s: Part of the best time that moves bytes.
        tdp_w: Power limit of the card.
        model: The time model.

    Returns:
        Joule on the card alone; host, fans and power supply come on top.
    """
    waiting_s = max(0.0, step_s.best - compute_s - memory_s)
    spent = {"power_compute": compute_s, "power_memory": memory_s, "power_launch": waiting_s}
    total = sum(spent.values())
    if total <= 0.0 or tdp_w <= 0.0:
        return NOTHING
    share = Interval(
        low=sum(model.parameters[n].low * s for n, s in spent.items()) / total,
        best=sum(model.parameters[n].value * s for n, s in spent.items()) / total,
        high=sum(model.parameters[n].high * s for n, s in spent.items()) / total,
    )
    return step_s.each(share, operator.mul).times(tdp_w)


def epoch_energy_kwh(step_j: Interval, *, samples: int, batch_size: int) -> Interval | None:
    """Return the energy of one pass over ``samples`` at ``step_j`` a step; None: number unknown.

    A last, smaller batch is a step too.
    """
    if not samples:
        return None
    return step_j.times(math.ceil(samples / batch_size) / JOULES_PER_KWH)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileWork:
    """What XLA's compiler works on: it tries several kernels for each product and convolution."""

    launches: float
    convolutions: int
    """Different ones, by sizes, direction and type; those in groups apart."""
    grouped: int
    half_products: int
    """Different products in 16 bits, for which it tries Triton's kernels too."""
    single_products: int


def compile_work(kernels: Iterable[Kernel]) -> CompileWork:
    """Count what a program of these kernels makes its compiler try out."""
    return _compile_work(tuple(kernels))


@kept_by_kernels
def _compile_work(kernels: tuple[Kernel, ...]) -> CompileWork:
    alike = {
        (one.kind, one.dtype, one.direction, tuple(sorted(one.dims.items())))
        for one in kernels
        if one.kind in LIBRARY_KINDS
    }
    kinds = Counter(
        ("grouped" if dict(dims).get("groups", (1,)) != (1,) else "convolution")
        if kind == "convolution"
        else ("half" if dtype in HALF else "single")
        for kind, dtype, _, dims in alike
    )
    return CompileWork(
        launches=float(sum(one.count / max(1, one.repeats) for one in kernels)),
        convolutions=kinds["convolution"],
        grouped=kinds["grouped"],
        half_products=kinds["half"],
        single_products=kinds["single"],
    )


def compile_time_s(work: CompileWork, execution: str, model: TimeModel) -> Interval:
    """Predict how long the first step compiles; zero where nothing is compiled.

    Linear in the kernels of the compiled step and, with software that tries kernels out on the
    card, in the different products and convolutions; the interval is that of the constants.
    """
    if execution != "xla":
        return NOTHING
    amounts = {
        "compile_fixed": 1.0,
        "compile_per_kernel": work.launches,
        "compile_convolution": work.convolutions,
        "compile_grouped": work.grouped,
        "compile_half_product": work.half_products,
        "compile_single_product": work.single_products,
    }
    known = [(model.parameters[n], a) for n, a in amounts.items() if n in model.parameters]
    return Interval(
        low=sum(one.low * amount for one, amount in known),
        best=sum(one.value * amount for one, amount in known),
        high=sum(one.high * amount for one, amount in known),
    )
