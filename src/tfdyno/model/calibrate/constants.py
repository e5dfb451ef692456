"""Constants of the law moved from their priors to what the sweep of a card found.

Each kernel of the sweep is priced by the law as it stands; what takes its time (arithmetic or
traffic) names the constant that it speaks for. Of the logarithms of measured over priced one
constant takes their mean, as far as they are surer than it was::

    share = prior^2 / (prior^2 + own^2)        own^2 = spread^2 / kernels + LEAST^2

A constant of software is only moved where the estimate is for the software that the sweep ran.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.interval import Scaled
from tfdyno.core.program import BufferPlan, Program
from tfdyno.model import kernel_law
from tfdyno.model.kernel_table import LIBRARY_KINDS, KernelTable
from tfdyno.model.kernel_time import peak_unit
from tfdyno.model.products import rate_of, unit_of_products

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tfdyno.core.card_file import CardFile, SweptKernel
    from tfdyno.core.hardware import Gpu
    from tfdyno.core.product_rates import ProductRates
    from tfdyno.core.time_model import Parameter, TimeModel

PRIOR = 0.25
"""Standard deviation of a constant of the law on a card that was not swept, in log. Judgement: as
far as fits with cards left out moved the constants."""
LEAST = 0.02
"""No mean of a sweep is surer: a card's clock wanders by about so much."""
LEAST_SHARE = 0.7
"""Of a kernel's time beyond the start: only then does one cause stand for it."""
PRODUCTS = "products "
"""Before the unit, in the name of what large products reach of its peak."""
SMALLEST, CALL, WITHOUT_GRAPHS = "t_kernel", "t_step", "host_kernel"
HOST = "host_primitive"
OF_SOFTWARE = frozenset((SMALLEST, CALL, WITHOUT_GRAPHS, HOST, "u_convolution"))
"""Constants that another release need not share; all others belong to the silicon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """One constant as a sweep leaves it."""

    name: str
    before: float
    after: float
    measured: float
    """What the sweep alone says."""
    deviation: float
    """Of its logarithm, one standard deviation."""
    kernels: int


def moved_constants(
    model: TimeModel, gpu: Gpu, card: CardFile, *, same_software: bool
) -> tuple[Moved, ...]:
    """What a sweep makes of the constants of one card.

    Args:
        model: Constants that ship with the tool.
        gpu: The card.
        card: Its sweep.
        same_software: Whether the estimate is for the generation of software that was swept.
    """
    if model.product_rates is None:
        return ()
    told = _ratios(model, gpu, [one for one in card.kernels if one.execution == "xla"])
    found = [_moved(model, gpu, name, logs) for name, logs in sorted(told.items())]
    found += _floors(model, card)
    return tuple(one for one in found if same_software or one.name not in OF_SOFTWARE)


def with_constants(
    model: TimeModel, gpu: Gpu, moved: Sequence[Moved], source: str
) -> TimeModel:  # fmt: skip
    """The time model with moved constants; their ranges grow where they lie outside."""
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
    """The table of products with a row of its own for the card; others keep theirs."""
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


def _ratios(
    model: TimeModel, gpu: Gpu, swept: Sequence[SweptKernel]
) -> dict[str, list[float]]:  # fmt: skip
    """Logarithms of measured over priced, by the constant that a kernel speaks for."""
    found: dict[str, list[float]] = defaultdict(list)
    for tf32 in (False, True):
        rows = [one for one in swept if one.tf32 is tf32]
        if rows:
            _add_ratios(found, model, gpu, rows, tf32_allowed=tf32)
    return found


def _add_ratios(
    found: dict[str, list[float]], model: TimeModel, gpu: Gpu, rows: Sequence[SweptKernel],
    *, tf32_allowed: bool,
) -> None:  # fmt: skip
    assert model.product_rates is not None
    program = program_of(rows)
    work = kernel_law.work_of(
        program, 1.0, gpu, tf32_allowed=tf32_allowed, rates=model.product_rates
    )
    compute, memory = kernel_law.alone(work, model)
    cuda = kernel_law.on_cuda_cores(work, model)
    power = model["overlap_power"]
    table = KernelTable.of(program)
    for index, one in enumerate(rows):
        law_class = work.classes[work.class_index[index]]
        body = one.kernel_s - model[SMALLEST]
        parts = compute[index] ** power, memory[index] ** power
        share = parts[0] / sum(parts)
        if body <= model[SMALLEST] or LEAST_SHARE > share > 1.0 - LEAST_SHARE:
            continue  # the start, or both causes together, decide
        log_ratio = math.log(body / sum(parts) ** (1.0 / power))
        if share < 0.5:
            found[kernel_law.memory_constant(law_class)].append(log_ratio)
        elif table.classes[table.class_index[index]].kind in LIBRARY_KINDS:
            name = _compute_name(gpu, one, law_class, cuda[index], tf32_allowed=tf32_allowed)
            found[name].append(log_ratio)
        else:
            found["u_elements"].append(log_ratio)


def _compute_name(
    gpu: Gpu, one: SweptKernel, law_class: kernel_law.LawClass, on_cuda: bool, *,
    tf32_allowed: bool,
) -> str:  # fmt: skip
    if law_class.cost.kind == "gemm":
        return PRODUCTS + unit_of_products(
            peak_unit(gpu, one.kernel.dtype, tf32_allowed=tf32_allowed)
        )
    names = kernel_law.compute_constants(law_class)
    return next(name for name in names if name.startswith("u_") and name != "u_half_rate")


def program_of(rows: Sequence[SweptKernel]) -> Program:
    """Swept kernels as the program of a step that holds at one batch."""
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
    """A share of a rate: a kernel that takes longer reaches less of it."""
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
    """A constant between its prior and what was measured; see the module's first lines."""
    own = math.hypot(spread / math.sqrt(kernels), LEAST)
    if kernels == 1:
        own = math.hypot(PRIOR / 2.0, LEAST)  # one kernel says nothing of how far others lie
    share = PRIOR**2 / (PRIOR**2 + own**2)
    after = before * (measured / before) ** share
    return Moved(name=name, before=before, after=after, measured=measured,
                 deviation=own * math.sqrt(share), kernels=kernels)  # fmt: skip


def _floors(model: TimeModel, card: CardFile) -> list[Moved]:
    """The start of a kernel, the pace of the host in a graph, and a call, of the smallest kernels.

    In a long chain of the smallest operations the graph's executor is slower than the card.
    """
    found = []
    for execution, name in (("xla", SMALLEST), ("graph", HOST)):
        least = min(
            (one.kernel_s for one in card.kernels if one.execution == execution), default=0.0
        )
        if least and name in model.parameters:
            found.append(shrunk(name, model[name], least, 0.0, 2))
    if card.pace.call_s and CALL in model.parameters:
        found.append(shrunk(CALL, model[CALL], card.pace.call_s, 0.0, 1))
    without = card.pace.kernel_without_graphs_s
    if without and model.values.get(WITHOUT_GRAPHS, 0.0) > 0.0:
        found.append(shrunk(WITHOUT_GRAPHS, model[WITHOUT_GRAPHS], without, 0.0, 1))
    return found


def by_name(moved: Iterable[Moved]) -> Mapping[str, Moved]:
    """Moved constants by their name."""
    return {one.name: one for one in moved}
