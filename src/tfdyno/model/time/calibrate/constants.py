"""Constants of the law moved from their priors to what the sweep of a card found.

Each kernel of the sweep is priced by the law as it stands; what takes its time (arithmetic or
traffic) names the constant that it speaks for. The law is made for steps, and is off kernels that
run alone: by how much tells the sweep of the card that its constants were learned on, kernel by
kernel, and that is taken off. Of what is left, the logarithms of measured over priced, one constant
takes the mean, as far as they are surer than it was::

    share = prior^2 / (prior^2 + own^2)        own^2 = spread^2 / kernels + LEAST^2

A constant of software is only moved where the estimate is for the software that the sweep ran.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.card_file import CardFile
from tfdyno.core.choose.hardware import Gpu
from tfdyno.core.choose.program import BufferPlan, Program
from tfdyno.model.time import kernel_law
from tfdyno.model.time.kernel_table import LIBRARY_KINDS, KernelTable
from tfdyno.model.time.kernel_time import peak_unit
from tfdyno.model.time.parts import memory_constant
from tfdyno.model.time.products import rate_of, unit_of_products

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tfdyno.core.choose.card_file import SweptKernel
    from tfdyno.core.choose.product_rates import ProductRates
    from tfdyno.core.choose.time_model import Parameter, TimeModel
    from tfdyno.model.time.law_classes import LawClass

PRIOR = 0.25
"""Standard deviation of a constant of the law on a card that was not swept, in log. Judgement: as
far as fits with cards left out moved the constants."""
LEAST = 0.02
"""No mean of a sweep is surer: a card's clock wanders by about so much."""
LEAST_STARTS = 4.0
"""A kernel that takes no more than so many starts beyond its own tells of starts: a product of 512
by 512 in float16 takes 7.5 us of an H200, of which 0.3 are arithmetic at what large ones reach."""
LEAST_SHARE = 0.7
"""The least share of a kernel's time beyond the start: only then does one cause stand for it."""
PRODUCTS = "products "
"""What stands before the unit in the name of what large products reach of its peak."""
SMALLEST, CALL, WITHOUT_GRAPHS = "t_kernel", "t_step", "host_kernel"
HOST = "host_primitive"
OF_SOFTWARE = frozenset((SMALLEST, CALL, WITHOUT_GRAPHS, HOST, "u_convolution"))
"""Constants that another release need not share; all others belong to the silicon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The sweep of a card whose steps the constants were learned from."""

    card: CardFile
    gpu: Gpu


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """One constant as a sweep leaves it."""

    name: str
    before: float
    after: float
    measured: float
    """What the sweep alone says."""
    deviation: float
    """One standard deviation of its logarithm."""
    kernels: int


def moved_constants(
    model: TimeModel, gpu: Gpu, card: CardFile, *, same_software: bool,
    reference: Reference | None = None,
) -> tuple[Moved, ...]:  # fmt: skip
    """Return what a sweep makes of the constants of one card.

    Args:
        model: Constants that ship with the tool.
        gpu: The card.
        card: Its sweep.
        same_software: Whether the estimate is for the generation of software that was swept.
        reference: What the law is off by; kernels that it lacks say nothing. None: by nothing.
    """
    if model.product_rates is None:
        return ()
    logs: dict[str, list[float]] = defaultdict(list)
    for name, log_ratio in _logs_beside(reference, model, gpu, card):
        logs[name].append(log_ratio)
    found = [_moved(model, gpu, name, told) for name, told in sorted(logs.items())]
    found += _floors(model, card, reference)
    return tuple(one for one in found if same_software or one.name not in OF_SOFTWARE)


def _logs_beside(
    reference: Reference | None, model: TimeModel, gpu: Gpu, card: CardFile
) -> list[tuple[str, float]]:
    """Return the constant that each swept kernel speaks for, and the log by which it is off."""
    own = _ratios(model, gpu, card)
    if reference is None:
        return list(own.values())
    law = _ratios(model, reference.gpu, reference.card)
    pairs = ((one, law[key]) for key, one in own.items() if key in law)
    return [(name, log - law_log) for (name, log), (same, law_log) in pairs if name == same]


def with_constants(
    model: TimeModel, gpu: Gpu, moved: Sequence[Moved], source: str
) -> TimeModel:  # fmt: skip
    """Return the time model with moved constants; their ranges grow where they lie outside."""
    parameters = dict(model.parameters)
    for one in moved:
        if one.name in parameters:
            parameters[one.name] = _parameter(parameters[one.name], one, source)
    rates = model.product_rates
    if rates is not None:
        rates = _with_rates(rates, gpu, [m for m in moved if m.name.startswith(PRODUCTS)], source)
    return replace(model, parameters=parameters, product_rates=rates)


def _parameter(held: Parameter, moved: Moved, source: str) -> Parameter:
    low, high = min(held.low, moved.after), max(held.high, moved.after)
    return replace(held, value=moved.after, low=low, high=high, source=source)


def _with_rates(
    rates: ProductRates, gpu: Gpu, moved: Iterable[Moved], source: str
) -> ProductRates:  # fmt: skip
    """Return the table of products with a row of its own for the card; others keep theirs."""
    name = f"{gpu.rates.compute_capability} {gpu.rates.variant}"
    rows = list(rates.rates)
    for one in moved:
        unit = one.name.removeprefix(PRODUCTS)
        held = next(rate_of(gpu, rate.unit, rates) for rate in rows if rate.unit == unit)
        place = rows.index(held)
        ratio = min(1.0, one.after)
        own = replace(held, cards=(name,), measured=True, peak_ratio=ratio, source=source)
        if name in held.cards:
            rest = tuple(card for card in held.cards if card != name)
            rows[place : place + 1] = [replace(held, cards=rest), own] if rest else [own]
        else:
            rows.append(own)
    return replace(rates, rates=tuple(rows))


def key_of(one: SweptKernel) -> str:
    """Return what tells a kernel of a sweep from all others, whichever card ran it."""
    kernel = one.kernel
    sizes = " ".join(f"{name}={value}" for name, value in sorted(kernel.dims.items()))
    kind = f"{one.execution} {kernel.name} {kernel.direction} {kernel.dtype}"
    return f"{kind} {one.tf32} {kernel.read_bytes.fixed} {sizes}"


def _ratios(model: TimeModel, gpu: Gpu, card: CardFile) -> dict[str, tuple[str, float]]:
    """Return each kernel's constant, and the log of measured over priced."""
    found: dict[str, tuple[str, float]] = {}
    for rows, tf32 in rows_of_xla(card):
        found |= _ratios_of(model, gpu, rows, tf32_allowed=tf32)
    return found


def rows_of_xla(card: CardFile) -> Iterator[tuple[list[SweptKernel], bool]]:
    """Yield the kernels that XLA compiled, without TF32 and with it, where there are any."""
    for tf32 in (False, True):
        rows = [one for one in card.kernels if one.execution == "xla" and one.tf32 is tf32]
        if rows:
            yield rows, tf32


def _ratios_of(
    model: TimeModel, gpu: Gpu, rows: Sequence[SweptKernel], *, tf32_allowed: bool
) -> dict[str, tuple[str, float]]:  # fmt: skip
    assert model.product_rates is not None
    program = program_of(rows)
    work = kernel_law.work_of(
        program, 1.0, gpu, tf32_allowed=tf32_allowed, rates=model.product_rates
    )
    compute, memory = kernel_law.alone(work, model)
    cuda = kernel_law.on_cuda_cores(work, model)
    power = model["overlap_power"]
    table = KernelTable.of(program)
    found: dict[str, tuple[str, float]] = {}
    for index, one in enumerate(rows):
        law_class = work.classes[work.class_index[index]]
        body = one.kernel_s - model[SMALLEST]
        parts = compute[index] ** power, memory[index] ** power
        share = parts[0] / sum(parts)
        if body <= LEAST_STARTS * model[SMALLEST] or LEAST_SHARE > share > 1.0 - LEAST_SHARE:
            continue  # the start, or both causes together, decide
        if share < 0.5:
            name = memory_constant(law_class.cost)
        elif table.classes[table.class_index[index]].kind in LIBRARY_KINDS:
            name = _compute_name(gpu, one, law_class, cuda[index], tf32_allowed=tf32_allowed)
        else:
            name = "u_elements"
        found[key_of(one)] = name, math.log(body / sum(parts) ** (1.0 / power))
    return found


def _compute_name(
    gpu: Gpu, one: SweptKernel, law_class: LawClass, on_cuda: bool, *,
    tf32_allowed: bool,
) -> str:  # fmt: skip
    if law_class.cost.kind == "gemm":
        return PRODUCTS + unit_of_products(
            peak_unit(gpu, one.kernel.dtype, tf32_allowed=tf32_allowed)
        )
    names = kernel_law.compute_constants(law_class)
    return next(name for name in names if name.startswith("u_") and name != "u_half_rate")


def program_of(rows: Sequence[SweptKernel]) -> Program:
    """Write swept kernels as the program of a step that holds at one batch."""
    none = Scaled()
    plan = BufferPlan(
        argument_bytes=none, output_bytes=none, aliased_bytes=none, temporary_bytes=none,
        peak_bytes=none, parts_bytes={}, largest=(), live_curve=(),
    )  # fmt: skip
    return Program(
        trace_sha256="", route="quick", family="", batch_size=1, marker=0,
        kernels=tuple(one.kernel for one in rows), buffers=plan, seconds_s=0.0, versions={},
    )  # fmt: skip


def _moved(model: TimeModel, gpu: Gpu, name: str, logs: Sequence[float]) -> Moved:
    """Return the moved share of a rate: a kernel that takes longer reaches less of it."""
    assert model.product_rates is not None
    if name.startswith(PRODUCTS):
        unit = name.removeprefix(PRODUCTS)
        before = next(
            rate_of(gpu, rate.unit, model.product_rates).peak_ratio
            for rate in model.product_rates.rates
            if rate.unit == unit
        )
    else:
        before = model[name]
    return shrunk(name, before, before / math.exp(float(np.mean(logs))), float(np.std(logs)),
                  len(logs))  # fmt: skip


def shrunk(name: str, before: float, measured: float, spread: float, kernels: int) -> Moved:
    """Return a constant between its prior and what was measured; see the module's first lines."""
    own = math.hypot(spread / math.sqrt(kernels), LEAST)
    if kernels == 1:
        own = math.hypot(PRIOR / 2.0, LEAST)  # one kernel says nothing of how far others lie
    share = PRIOR**2 / (PRIOR**2 + own**2)
    after = before * (measured / before) ** share
    return Moved(name=name, before=before, after=after, measured=measured,
                 deviation=own * math.sqrt(share), kernels=kernels)  # fmt: skip


def _floors(model: TimeModel, card: CardFile, reference: Reference | None) -> list[Moved]:
    """Return a kernel's start, the host's pace in a graph, and a call, of the smallest kernels.

    A chain of the smallest operations is not the many kinds of a step: with a reference a constant
    moves by what the card takes beside it, and not where that did not measure it, or another
    framework did: the host's part is the framework's.
    """
    told, law = _smallest(card), {}
    if reference and reference.card.framework == card.framework:
        law = _smallest(reference.card)
    found = []
    for name, measured_s in told.items():
        before = model.values.get(name, 0.0)
        if before <= 0.0 or (reference and name not in law):
            continue
        measured = before * measured_s / law[name] if reference else measured_s
        count = 1 if name in (CALL, WITHOUT_GRAPHS) else 2
        found.append(shrunk(name, before, measured, 0.0, count))
    return found


def _smallest(card: CardFile) -> dict[str, float]:
    """Return what a sweep measured of each constant of host and kernel start, in seconds."""
    told = {CALL: card.pace.call_s, WITHOUT_GRAPHS: card.pace.kernel_without_graphs_s}
    for execution, name in (("xla", SMALLEST), ("graph", HOST)):
        times_s = [one.kernel_s for one in card.kernels if one.execution == execution
                   and one.kernel.flops.fixed <= 1.0]  # fmt: skip
        told[name] = min(times_s, default=0.0)
    return {name: value for name, value in told.items() if value > 0.0}


def by_name(moved: Iterable[Moved]) -> Mapping[str, Moved]:
    """Return moved constants by their name."""
    return {one.name: one for one in moved}
