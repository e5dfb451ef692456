"""The terms of a kernel's price under the law of today's software, each with its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from tfdyno.core.choose.explanation import Factor, Peak
from tfdyno.model.time import kernel_law
from tfdyno.model.time.kernel_table import LIBRARY_KINDS, ON_UNITS
from tfdyno.model.time.kernel_time import peak_unit
from tfdyno.model.time.parts import memory_parts
from tfdyno.model.time.peaks import peak_flops_per_s
from tfdyno.model.time.terms import BANDWIDTH, factors_of, launched, rated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.explanation import Term
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.time_model import TimeModel
    from tfdyno.model.time.law_classes import LawClass
    from tfdyno.model.time.terms import Pricing
    from tfdyno.model.time.terms import Work as Amounts
    from tfdyno.model.time.timing import Timing

LANES = "lanes"
"""Name of the rate at which a card computes on elements, as ``Peak`` gives it."""
_WORDS = {
    "u_elements": "operations a lane",
    "u_unaligned": "rows that are no whole vectors",
    "u_half_rate": "cores that add up at half rate",
    "u_convolution": "convolution over product",
    "u_volume": "three-dimensional over plain",
    "u_depthwise": "peak share, depthwise",
    "u_grouped": "peak share, grouped",
    "winograd3": "multiplications Winograd saves",
    "winograd5": "multiplications Winograd saves",
}


def law_terms(
    members: Sequence[int], dtype: str, amounts: Amounts, timing: Timing, pricing: Pricing
) -> tuple[Term, ...]:
    """Price kernels that are alike, term by term; terms of nothing are left out.

    What arithmetic and traffic hide of each other is a factor of both, so that terms add up.

    Args:
        members: Places of the kernels in the program.
        dtype: Of what a library multiplies.
        amounts: Their work together.
        timing: The whole program's, priced kernel by kernel.
        pricing: The card, the setting and the constants.

    Raises:
        ValueError: The program was priced by class.
    """
    work, graph, model = timing.work, timing.graph, pricing.time_model
    if work is None:
        raise ValueError("the program was priced by class, not kernel by kernel")
    chosen = np.asarray(members, dtype=np.intp)
    one = work.classes[work.class_index[chosen[0]]]
    launches = work.launches[chosen]
    alone = (float(np.sum(part[chosen] * launches)) for part in kernel_law.alone(work, model))
    compute_s, memory_s = alone
    paid_s = float(timing.causes.compute_s[chosen].sum())
    moved_s = float(timing.causes.memory_s[chosen].sum())
    terms, each = [], "t_kernel"
    cuda = bool(kernel_law.on_cuda_cores(work, model)[chosen[0]])
    if paid_s > 0.0:
        full = work.cuda_s if cuda else work.compute_s
        full_s = float(np.sum(full[chosen] * launches))
        terms.append(_compute(one, dtype, amounts, full_s, compute_s, paid_s, pricing, cuda=cuda))
    if graph is not None:
        each = "t_recurrent" if graph.chained[chosen[0]] else "t_primitive"
    if moved_s > 0.0 and graph is not None and one.cost.kind not in LIBRARY_KINDS:
        terms.append(_primitive(amounts, moved_s, pricing))
    elif moved_s > 0.0:
        terms.append(_memory(one, amounts, memory_s, moved_s, pricing, cuda=cuda))
    if amounts.launches > 0.0:
        terms.append(launched(amounts, model, each))
    return tuple(terms)


def lanes(gpu: Gpu, model: TimeModel) -> Peak:
    """Return the rate at which a card computes on elements."""
    slug = gpu.slug.split(":")[0]
    held = model.sustained_clock.get(slug, 1.0)
    return Peak(
        name=LANES,
        rate_per_s=gpu.sm_count * kernel_law.INTEGER_LANES * gpu.boost_hz * held,
        unit="FLOP",
        sm_count=gpu.sm_count,
        flops_per_clock=kernel_law.INTEGER_LANES,
        clock_hz=gpu.boost_hz,
        held_ratio=held,
        held_source=model.sustained_clock_source.get(slug, ""),
        source="NVIDIA, CUDA C++ Programming Guide: integer operations per clock and SM",
    )


def _compute(
    one: LawClass, dtype: str, amounts: Amounts, full_s: float, alone_s: float,
    paid_s: float, pricing: Pricing, *, cuda: bool,
) -> Term:  # fmt: skip
    gpu, model = pricing.gpu, pricing.time_model
    if one.cost.kind in ON_UNITS:
        unit = peak_unit(gpu, dtype, tf32_allowed=pricing.tf32_allowed)
        unit = "fp32" if cuda or one.cost.shape == "depthwise" else unit
        peak, rate = str(unit), peak_flops_per_s(gpu, unit)
        rate *= model.sustained_clock.get(gpu.slug.split(":")[0], 1.0)
    else:
        peak, rate = LANES, lanes(gpu, model).rate_per_s
    sized = amounts.flops / (rate * full_s)
    shares = [] if abs(sized - 1.0) < 1e-12 else [_plain("reached at these sizes", sized)]
    shares += [
        Factor(name=_WORDS[name], constant=name, factor_ratio=model[name])
        for name in (kernel_law.cuda_constants(one) if cuda else kernel_law.compute_constants(one))
    ]
    shares.append(_plain("beside the traffic", alone_s / paid_s))
    return _rated("compute", amounts.flops, peak, rate, shares, paid_s)


def _memory(
    one: LawClass, amounts: Amounts, alone_s: float, paid_s: float, pricing: Pricing,
    *, cuda: bool,
) -> Term:  # fmt: skip
    bandwidth = pricing.gpu.memory_bytes_per_s
    shares = list(factors_of(memory_parts(one.cost, pricing.time_model)))
    value = shares[0].factor_ratio
    more: tuple[Factor, ...] = ()
    if one.turned and not cuda:
        turned = kernel_law.turned_constant(one)
        factor = pricing.time_model[turned]
        more = (Factor(name="copied into another order", constant=turned, factor_ratio=factor),)
    once_s = amounts.traffic_bytes * (more[0].factor_ratio if more else 1.0) / (bandwidth * value)
    if alone_s > once_s * (1.0 + 1e-12):
        shares.append(_plain("bytes read again by windows", once_s / alone_s))
    shares.append(_plain("beside the arithmetic", alone_s / paid_s))
    return _rated("memory", amounts.traffic_bytes, BANDWIDTH, bandwidth, shares, paid_s, more)


def _primitive(amounts: Amounts, paid_s: float, pricing: Pricing) -> Term:
    """Return the traffic of TensorFlow's own kernels, or the loads that it waits for."""
    bandwidth, value = pricing.gpu.memory_bytes_per_s, pricing.time_model["e_primitive"]
    shares = [
        Factor(name="bandwidth share, TensorFlow's kernels", constant="e_primitive",
               factor_ratio=value),
        _plain("loads that wait for each other", amounts.traffic_bytes / (bandwidth * value)
               / paid_s),
    ]  # fmt: skip
    return _rated("memory", amounts.traffic_bytes, BANDWIDTH, bandwidth, shares, paid_s)


def _plain(name: str, ratio: float) -> Factor:
    return Factor(name=name, constant="", factor_ratio=ratio)


def _rated(
    cause: Literal["compute", "memory"],
    amount: float,
    peak: str,
    rate: float,
    shares: Sequence[Factor],
    time_s: float,
    more: tuple[Factor, ...] = (),
) -> Term:
    told = tuple(one for one in shares if one.constant or abs(one.factor_ratio - 1.0) > 1e-12)
    return rated(cause, amount, peak=peak, rate_per_s=rate, shares=told, time_s=time_s, more=more)
