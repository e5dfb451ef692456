"""Where the time of a step goes: by kernel, by class, by layer, and on the roofline."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.choose.estimate import HeldBuffer, LayerTime, RooflinePoint
from tfdyno.model.time.kernel_table import kept_by_kernels
from tfdyno.model.time.kernel_time import Rates
from tfdyno.model.time.step import device_seconds, executed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from tfdyno.core.choose.program import BufferPlan, Kernel
    from tfdyno.core.choose.time_model import Constants
    from tfdyno.model.time.kernel_table import KernelTable
    from tfdyno.model.time.step import Causes, Factors

    Floats = NDArray[np.float64]
    Booleans = NDArray[np.bool_]

MOST_ROOFLINE_POINTS = 40


def kernel_causes(
    table: KernelTable, batch_size: float, rates: Rates, how: Factors, constants: Constants
) -> Causes:
    """Return device seconds of every kernel by cause on the first target of ``rates``."""
    paid, index = executed(rates, table.classes, how), table.class_index
    each = Rates(
        s_per_flop=paid.s_per_flop[0, index],
        s_per_byte=paid.s_per_byte[0, index],
        s_per_extra_byte=paid.s_per_extra_byte[0, index],
        tensor_cores=paid.tensor_cores[0, index],
    )
    return device_seconds(table.by_kernel(batch_size), each, how, constants)


def seconds_by_kind(table: KernelTable, seconds: Floats) -> dict[str, float]:
    """Return device seconds by kind of kernel, longest first."""
    by_kind: defaultdict[str, float] = defaultdict(float)
    by_class = np.bincount(table.class_index, seconds, minlength=len(table.classes))
    for cost_class, spent in zip(table.classes, by_class.tolist(), strict=True):
        by_kind[cost_class.kind] += spent
    return _sorted(by_kind)


def forward_ratio(kernels: tuple[Kernel, ...], seconds: Floats) -> float:
    """Share of the kernels' seconds that the forward pass takes; 1.0 where there is nothing."""
    whole = float(seconds.sum())
    return float(seconds[_is_forward(kernels)].sum()) / whole if whole > 0.0 else 1.0


@kept_by_kernels
def _is_forward(kernels: tuple[Kernel, ...]) -> Booleans:
    return np.array([kernel.phase == "forward" for kernel in kernels], dtype=bool)


@kept_by_kernels
def forward_kernels(kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """Return those of the forward pass."""
    return tuple(kernel for kernel in kernels if kernel.phase == "forward")


def layer_times(
    kernels: Iterable[Kernel], seconds: Floats, batch_size: float
) -> tuple[LayerTime, ...]:
    """Return device time by layer of the user's model, longest first; "(other)" has no layer."""
    phases: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    kinds: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    flops: defaultdict[str, float] = defaultdict(float)
    traffic: defaultdict[str, float] = defaultdict(float)
    for kernel, spent in zip(kernels, seconds.tolist(), strict=True):
        layer = kernel.layer or "(other)"
        phases[layer][kernel.phase] += spent
        kinds[layer][kernel.kind] += spent
        flops[layer] += kernel.flops.at(batch_size)
        traffic[layer] += kernel.read_bytes.at(batch_size) + kernel.write_bytes.at(batch_size)
    found = [
        LayerTime(
            layer=layer,
            step_s=sum(by_phase.values()),
            by_phase_s=_sorted(by_phase),
            by_class_s=_sorted(kinds[layer]),
            flops=flops[layer],
            traffic_bytes=traffic[layer],
        )
        for layer, by_phase in phases.items()
    ]
    return tuple(sorted(found, key=lambda each: -each.step_s))


def roofline_points(
    kernels: Iterable[Kernel], seconds: Floats, batch_size: float
) -> tuple[RooflinePoint, ...]:
    """Give kernels of one kind and layer as a point, longest first, up to ``MOST_ROOFLINE_POINTS``.

    Kernels without FLOPs (copies) have no place on a roofline and are left out.
    """
    groups: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0] * 4)
    for kernel, spent in zip(kernels, seconds.tolist(), strict=True):
        group = groups[kernel.layer or "(other)", kernel.kind]
        traffic = kernel.read_bytes.at(batch_size) + kernel.write_bytes.at(batch_size)
        for index, amount in enumerate((kernel.flops.at(batch_size), traffic, spent, kernel.count)):
            group[index] += amount
    points = [
        RooflinePoint(
            label=layer,
            kind=kind,
            intensity_flops_per_byte=flops / traffic,
            rate_flops_per_s=flops / spent,
            time_s=spent,
            launches=round(launches),
        )
        for (layer, kind), (flops, traffic, spent, launches) in groups.items()
        if flops > 0.0 and traffic > 0.0 and spent > 0.0
    ]
    points.sort(key=lambda point: -point.time_s)
    return tuple(points[:MOST_ROOFLINE_POINTS])


def held_buffers(plan: BufferPlan, batch_size: float) -> tuple[HeldBuffer, ...]:
    """Return the plan's largest buffers at a batch, largest first, without those of no size."""
    found = [
        HeldBuffer(
            name=one.name,
            layer=one.layer,
            part=one.part,
            dtype=one.dtype,
            held_bytes=one.bytes.at(batch_size),
        )
        for one in plan.largest
    ]
    return tuple(sorted((one for one in found if one.held_bytes > 0),
                        key=lambda one: -one.held_bytes))  # fmt: skip


def live_curve(plan: BufferPlan, batch_size: float) -> tuple[tuple[float, float], ...]:
    """Share of the schedule and bytes alive at a batch."""
    return tuple((share, live.at(batch_size)) for share, live in plan.live_curve)


def _sorted(values: dict[str, float]) -> dict[str, float]:
    return dict(sorted(values.items(), key=lambda item: -item[1]))
