"""Why a step takes as long as it does: kernels by price, with every number behind them.

Nothing is priced here: the seconds are those of ``timing``, the factors those of ``parts`` and
``kernel_law``, and a test works each term out again from what is shown.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

import numpy as np

from tfdyno.core.choose.explanation import (
    Constant,
    Exchange,
    Explanation,
    HostCost,
    KernelPrice,
    OtherKernels,
    Peak,
    Width,
)
from tfdyno.core.choose.program import Kernel, Program
from tfdyno.model.time import step
from tfdyno.model.time.kernel_law import compute_constants, cuda_constants, on_cuda_cores
from tfdyno.model.time.kernel_table import LIBRARY_KINDS, ON_UNITS, CostClass, KernelTable
from tfdyno.model.time.law_terms import LANES, lanes, law_terms
from tfdyno.model.time.terms import Pricing, Work, peak_of, route_name, terms_of
from tfdyno.model.time.timing import Timing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.choose.time_model import TimeModel

LISTED_SHARE = 0.9
"""The kernels listed make this share of the step ..."""
LISTED_OF_DEVICE = 0.95
"""... or, where the step mostly waits, this share of what the kernels take."""
_FIXED = "t_step"
_UNLISTED = "inner"
"""Size that decides nothing but the class (rows or not)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Basis:
    """What a step was priced from."""

    program: Program
    batch_size: int
    pricing: Pricing
    timing: Timing
    """The timing on one card."""
    exchange: Exchange | None
    width: Width


def explain(basis: Basis, *, listed_share: float = LISTED_SHARE) -> Explanation:
    """Take the time of a step apart.

    Args:
        basis: What it was priced from.
        listed_share: Share of the step that the kernels listed one by one make.
    """
    model, alone = basis.pricing.time_model, basis.timing.alone
    exposed_s = basis.exchange.exposed_s if basis.exchange else 0.0
    device_s, alone_s = float(alone.device_s[0]), float(alone.step_s[0])
    groups, causes = _groups(basis)
    enough_s = min(listed_share * (alone_s + exposed_s),
                   max(listed_share, LISTED_OF_DEVICE) * device_s)  # fmt: skip
    most = _how_many(groups, enough_s)
    listed = tuple(_price(group, basis, alone_s + exposed_s) for group in groups[:most])
    host = _host(groups, basis)
    return Explanation(
        step_s=alone_s + exposed_s,
        measured_ratio=1.0,
        device_s=device_s,
        device_by_cause_s=causes,
        count=sum(group.count for group in groups),
        host_s=float(alone.host_s[0]),
        host=host,
        waiting_s=alone_s - model[_FIXED] - device_s,
        fixed_s=model[_FIXED],
        fixed_constant=_FIXED,
        sum_rule="slower" if basis.timing.graph is not None else "powers",
        exchange=basis.exchange,
        kernels=listed,
        others=_others(groups[most:]),
        peaks=tuple(_peak(name, basis.pricing) for name in _peak_names(listed)),
        constants=_constants(
            model, {*(cost.constant for cost in host), _FIXED, *_names(listed, basis.exchange)}
        ),
        width=basis.width,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Kernels that are priced alike."""

    first: Kernel
    members: tuple[int, ...]
    """Places in the program."""
    cost_class: CostClass
    layers: tuple[str, ...]
    work: Work
    time_s: float
    smallest_bytes: float
    largest_bytes: float

    @property
    def count(self) -> int:
        return round(self.work.launches)


def _groups(basis: Basis) -> tuple[list[_Group], dict[str, float]]:
    """Return kernels of one class, dtype, size, direction and phase together, longest first.

    With them the seconds of all kernels by cause.
    """
    table, at = KernelTable.of(basis.program), np.array([1.0, basis.batch_size])
    causes, seconds = basis.timing.causes, basis.timing.seconds
    each = table.by_kernel(basis.batch_size)
    flops = table.flops @ at
    columns = (each.launches, flops, each.executed_flops, each.traffic_bytes, each.extra_bytes)
    kernels, found = basis.program.kernels, []
    for members in _alike(kernels, table):
        sizes = each.traffic_bytes[members] / np.maximum(each.launches[members], 1.0)
        largest_first = sorted(members, key=lambda index: -each.traffic_bytes[index])
        layers = dict.fromkeys(kernels[index].layer for index in largest_first)
        found.append(
            _Group(
                first=kernels[members[0]],
                members=tuple(members),
                cost_class=table.classes[table.class_index[members[0]]],
                layers=tuple(filter(None, layers)),
                work=Work(*(float(np.sum(column[members])) for column in columns)),
                time_s=float(np.sum(seconds[members])),
                smallest_bytes=float(np.min(sizes)),
                largest_bytes=float(np.max(sizes)),
            )
        )
    totals = {
        "compute": float(np.sum(causes.compute_s)),
        "memory": float(np.sum(causes.memory_s)),
        "launch": float(np.sum(causes.launch_s)),
    }
    priced = (group for group in found if group.time_s > 0.0)
    return sorted(priced, key=lambda group: -group.time_s), totals


def _alike(kernels: Sequence[Kernel], table: KernelTable) -> Iterable[list[int]]:
    """Return places of the kernels that are listed as one."""
    found: defaultdict[object, list[int]] = defaultdict(list)
    for index, (kernel, place) in enumerate(zip(kernels, table.class_index, strict=True)):
        sizes = tuple(sorted(item for item in kernel.dims.items() if item[0] != _UNLISTED))
        found[int(place), kernel.dtype, kernel.direction, kernel.phase, sizes].append(index)
    return found.values()


def _host(groups: Sequence[_Group], basis: Basis) -> tuple[HostCost, ...]:
    """Return what the host pays, kernel by kernel and for convolutions, where they cost more."""
    launches: defaultdict[str, float] = defaultdict(float)
    for group in groups:
        launches["kernels"] += group.work.launches
        if group.cost_class.kind == "convolution":
            launches["convolutions"] += group.work.launches
    costs: list[tuple[Literal["kernels", "kernels in loops", "convolutions"], str]]
    if basis.timing.graph is not None:
        costs = [("kernels", "host_primitive")]
        launches["kernels"] -= sum(
            group.work.launches for group in groups if group.cost_class.kind == "recurrent"
        )
    elif basis.timing.work is not None:
        costs = [
            ("kernels", "host_kernel"),
            ("kernels in loops", "host_loop"),
            ("convolutions", "host_convolution"),
        ]
        launches["kernels in loops"] = float(basis.timing.work.looped.sum())
    else:
        names = step.factor_names(basis.pricing.setting)
        costs = [("kernels", names["host_s"])]
        if "host_convolution_s" in names:
            costs.append(("convolutions", names["host_convolution_s"]))
    model = basis.pricing.time_model
    return tuple(
        HostCost(count=round(launches[what]), what=what, each_s=model[name], constant=name)
        for what, name in costs
        if launches[what] and model[name]
    )


def _how_many(groups: Sequence[_Group], enough_s: float) -> int:
    """Return groups, longest first, that take ``enough_s`` together."""
    reached = accumulate(group.time_s for group in groups)
    return next((n for n, sum_s in enumerate(reached, start=1) if sum_s >= enough_s), len(groups))


def _price(group: _Group, basis: Basis, step_s: float) -> KernelPrice:
    pricing, work, time_s = basis.pricing, group.work, group.time_s
    if basis.timing.work is not None:
        terms = law_terms(group.members, group.first.dtype, work, basis.timing, pricing)
    else:
        terms = terms_of(group.cost_class, work, pricing)
    library = group.cost_class.kind in ON_UNITS
    compute = next((term for term in terms if library and term.cause == "compute"), None)
    by_cause: defaultdict[str, float] = defaultdict(float)
    for term in terms:
        by_cause["memory" if term.cause == "overlap" else term.cause] += term.time_s
    return KernelPrice(
        kind=group.first.kind,
        dtype=group.first.dtype,
        direction=group.first.direction,
        phase=group.first.phase,
        shape=group.cost_class.shape,
        route=_route(group, basis),
        dims=_dims(group.first, basis),
        layers=tuple(group.layers),
        count=group.count,
        time_s=time_s,
        share_ratio=time_s / step_s,
        flops=work.flops,
        traffic_bytes=work.traffic_bytes,
        smallest_bytes=group.smallest_bytes,
        largest_bytes=group.largest_bytes,
        terms=terms,
        peak_ratio=work.flops / time_s / compute.rate_per_s if compute else None,
        bandwidth_ratio=work.traffic_bytes / time_s / pricing.gpu.memory_bytes_per_s,
        bound_by=max(by_cause, key=by_cause.__getitem__),
    )


def _route(group: _Group, basis: Basis) -> str:
    work = basis.timing.work
    if work is None:
        return route_name(group.cost_class, basis.pricing)
    first = group.members[0]
    cuda = on_cuda_cores(work, basis.pricing.time_model)[first]
    names = (cuda_constants if cuda else compute_constants)(work.classes[work.class_index[first]])
    if group.cost_class.kind not in LIBRARY_KINDS:
        return ""
    return "Winograd" if any(name.startswith("winograd") for name in names) else "product"


def _dims(kernel: Kernel, basis: Basis) -> dict[str, tuple[int, ...]]:
    """Return sizes at the batch asked: a program is made at another."""
    grown = basis.batch_size / basis.program.batch_size
    return {
        name: tuple(round(size * grown) for size in sizes) if name in kernel.dims_scaled else sizes
        for name, sizes in kernel.dims.items()
        if name != _UNLISTED
    }


def _others(groups: Sequence[_Group]) -> tuple[OtherKernels, ...]:
    by_kind: defaultdict[str, list[_Group]] = defaultdict(list)
    for group in groups:
        by_kind[group.first.kind].append(group)
    found = [
        OtherKernels(
            kind=kind,
            count=sum(one.count for one in some),
            time_s=sum(one.time_s for one in some),
        )
        for kind, some in by_kind.items()
    ]
    return tuple(sorted(found, key=lambda one: -one.time_s))


def _peak(name: str, pricing: Pricing) -> Peak:
    return lanes(pricing.gpu, pricing.time_model) if name == LANES else peak_of(name, pricing)


def _peak_names(listed: Iterable[KernelPrice]) -> dict[str, None]:
    return dict.fromkeys(term.peak for one in listed for term in one.terms if term.peak)


def _names(listed: Iterable[KernelPrice], exchange: Exchange | None) -> set[str]:
    """Name the constants behind the terms that are shown."""
    terms = [term for one in listed for term in one.terms]
    found = {factor.constant for term in terms for factor in (*term.more, *term.shares)}
    found |= {term.each for term in terms}
    if exchange:
        found |= {factor.constant for factor in exchange.shares} | set(exchange.constants)
    return found - {""}


def _constants(model: TimeModel, names: Iterable[str]) -> tuple[Constant, ...]:
    found = (model.parameters[name] for name in sorted(names))
    return tuple(
        Constant(
            name=one.name,
            value=one.value,
            unit=one.unit,
            fitted=one.learned,
            identified=one.identified,
            low=one.low,
            high=one.high,
            source=one.source,
        )
        for one in found
    )
