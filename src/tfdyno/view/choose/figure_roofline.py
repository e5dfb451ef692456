"""The roofline of one card with the groups of kernels on it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfdyno.view.draw.bars import texts
from tfdyno.view.draw.labels import Anchor
from tfdyno.view.draw.layers import block_names
from tfdyno.view.draw.palette import paint
from tfdyno.view.draw.plane import Plane, line, padded, placed_labels, plane, spec, spots
from tfdyno.view.draw.svg import Figure, Spec, Table, draw
from tfdyno.words.base import amounts
from tfdyno.words.base.language import say
from tfdyno.words.choose import kernels

if TYPE_CHECKING:
    from tfdyno.core.choose.estimate import Estimate, RooflinePoint
    from tfdyno.core.choose.hardware import Gpu

_LARGEST_AREA = 2600.0
_SMALLEST_AREA = 24.0
_ARITHMETIC = ("convolution", "gemm")


@dataclass(frozen=True, slots=True)
class Roof:
    """A ceiling of the plot: operations per second, and what it is called."""

    flops_per_s: float
    name: str


def roofs(gpu: Gpu, precision: str) -> tuple[Roof, ...]:
    """Return dense ceilings that matter at ``precision``, highest first: tensor cores, float32.

    Operations per clock × SMs × clock, from the catalogue; a unit that is absent gives no roof.
    """
    rates = gpu.rates
    tensor = {
        "mixed_float16": (rates.fp16_tensor_per_clock, say("tensor cores, float16")),
        "float16": (rates.fp16_tensor_per_clock, say("tensor cores, float16")),
        "mixed_bfloat16": (rates.bf16_tensor_per_clock, say("tensor cores, bfloat16")),
        "bfloat16": (rates.bf16_tensor_per_clock, say("tensor cores, bfloat16")),
        "tf32": (rates.tf32_tensor_per_clock, say("tensor cores, TF32")),
    }.get(precision, (0.0, ""))
    found = [
        Roof(tensor[0] * gpu.sm_count * gpu.tensor_clock_hz, tensor[1]),
        Roof(rates.fp32_per_clock * gpu.sm_count * gpu.boost_hz, say("float32 units")),
    ]
    return tuple(roof for roof in found if roof.flops_per_s > 0)


def roofline_figure(estimate: Estimate, gpu: Gpu) -> Figure | None:
    """Draw intensity against rate, area = time; ``None`` when no group has both FLOPs and bytes."""
    ceilings = roofs(gpu, estimate.precision)
    points = drawable(estimate)
    if not points or not ceilings or gpu.memory_bytes_per_s <= 0:
        return None
    return Figure(
        label=_label(estimate, gpu, ceilings, points),
        wide=draw(_spec(estimate, gpu, ceilings, narrow=False)),
        narrow=draw(_spec(estimate, gpu, ceilings, narrow=True)),
        table=_table(estimate),
    )


def drawable(estimate: Estimate) -> list[RooflinePoint]:
    """Join kernels of one kind in layers whose names begin alike to a point each, longest first.

    FLOPs, bytes and seconds are summed; copies, which have no FLOPs, are left out.
    """
    points = [
        point
        for point in estimate.roofline
        if point.intensity_flops_per_byte > 0 and point.rate_flops_per_s > 0
    ]
    members: dict[str, list[RooflinePoint]] = defaultdict(list)
    blocks = block_names(estimate.layers)
    for point in points:
        name = blocks.get(point.label, point.label)
        members[f"{name} {kernels.kind(point.kind)}"].append(point)
    return sorted((_sum(*item) for item in members.items()), key=lambda point: -point.time_s)


def _sum(label: str, points: list[RooflinePoint]) -> RooflinePoint:
    time_s = sum(point.time_s for point in points)
    flops = sum(point.rate_flops_per_s * point.time_s for point in points)
    moved_bytes = sum(
        point.rate_flops_per_s * point.time_s / point.intensity_flops_per_byte for point in points
    )
    return replace(
        points[0],
        label=label,
        intensity_flops_per_byte=flops / moved_bytes,
        rate_flops_per_s=flops / time_s,
        time_s=time_s,
        launches=sum(point.launches for point in points),
    )


def _spec(estimate: Estimate, gpu: Gpu, ceilings: tuple[Roof, ...], *, narrow: bool) -> Spec:
    points = drawable(estimate)
    board = _board(points, gpu, ceilings, narrow=narrow)
    lines = [_roof_line(board, gpu, roof) for roof in ceilings]
    layers = [line(path, color=paint("ink"), strokeWidth=1.5) for path in lines]
    words = _roof_words(board, gpu, ceilings, narrow=narrow)
    layers += texts(words, align="right")
    layers.append(_dots(points, estimate, board, narrow))
    most = 6 if narrow else 16
    anchors = [
        Anchor(
            x=board.point(p.intensity_flops_per_byte, p.rate_flops_per_s)[0],
            y=board.point(p.intensity_flops_per_byte, p.rate_flops_per_s)[1],
            text=f"{p.label} {amounts.percent(_share(p, estimate))}" if index < most else "",
            radius=(_area(p, points, narrow) / 3.1416) ** 0.5,
            rings=5,
            must=index < 2,
            bold=index == 0,
        )
        for index, p in enumerate(points)
    ]
    anchors.insert(2, _memory_anchor(board, gpu, ceilings[0]))
    return spec(board, layers + placed_labels(board, anchors, lines, words))


def _board(
    points: list[RooflinePoint], gpu: Gpu, ceilings: tuple[Roof, ...], *, narrow: bool
) -> Plane:
    ridge = ceilings[0].flops_per_s / gpu.memory_bytes_per_s
    intensities = [*(p.intensity_flops_per_byte for p in points), ridge]
    rates = [*(p.rate_flops_per_s for p in points), *(roof.flops_per_s for roof in ceilings)]
    floor = ceilings[0].flops_per_s / 1e7
    return plane(
        x_range=padded((max(value, ridge / 1e5) for value in intensities), below=2.2, above=25),
        y_range=padded((max(value, floor) for value in rates), below=2.5, above=2.2),
        x_title=say("FLOP per byte moved (log scale)"),
        y_title=say("TFLOP/s reached (log scale)"),
        x_words=amounts.plain,
        y_words=lambda value: amounts.plain(value / 1e12),
        narrow=narrow,
    )


def _roof_line(board: Plane, gpu: Gpu, roof: Roof) -> list[tuple[float, float]]:
    ridge = roof.flops_per_s / gpu.memory_bytes_per_s
    start_x = max(board.x.low, board.y.low / gpu.memory_bytes_per_s)
    start = board.point(start_x, start_x * gpu.memory_bytes_per_s)
    return [
        start,
        board.point(ridge, roof.flops_per_s),
        board.point(board.x.high, roof.flops_per_s),
    ]


def _roof_words(
    board: Plane, gpu: Gpu, ceilings: tuple[Roof, ...], *, narrow: bool
) -> list[tuple[float, float, str]]:
    """Return words at the right end of each flat roof: on a phone the number alone."""
    words = []
    for roof in ceilings:
        y = board.point(roof.flops_per_s / gpu.memory_bytes_per_s, roof.flops_per_s)[1]
        number = f"{roof.flops_per_s / 1e12:,.0f} TFLOP/s"
        text = number if narrow else f"{number}, {roof.name}"
        words.append((board.x.length_px, y - 10, text))
    return words


def _memory_anchor(board: Plane, gpu: Gpu, roof: Roof) -> Anchor:
    """Return the words on the slanted roof, which look for a free place beside its middle."""
    (x1, y1), (x2, y2) = _roof_line(board, gpu, roof)[:2]
    text = say("memory {rate:,.0f} GB/s", rate=gpu.memory_bytes_per_s / 1e9)
    return Anchor(x=(x1 + x2) / 2, y=(y1 + y2) / 2, text=text, radius=1, rings=5, must=True)


def _area(point: RooflinePoint, points: list[RooflinePoint], narrow: bool) -> float:
    largest = max(other.time_s for other in points) or 1.0
    area = _LARGEST_AREA * (0.4 if narrow else 1.0) * point.time_s / largest
    return max(area, _SMALLEST_AREA)


def _dots(points: list[RooflinePoint], estimate: Estimate, board: Plane, narrow: bool) -> Spec:
    rows = []
    for point in points:
        x, y = board.point(point.intensity_flops_per_byte, point.rate_flops_per_s)
        colour = paint("c1" if point.kind in _ARITHMETIC else "c3")
        area = _area(point, points, narrow)
        tip = _tip(point, estimate)
        rows.append({"x": x, "y": y, "fill": colour, "size": area, "tip": tip})
    return spots(rows, filled=True, opacity=0.8, stroke=paint("bg"))


def _share(point: RooflinePoint, estimate: Estimate) -> float:
    total = sum(estimate.class_s.values()) or sum(one.time_s for one in estimate.roofline)
    return point.time_s / total if total else 0.0


def _tip(point: RooflinePoint, estimate: Estimate) -> str:
    return say(
        "{label}: {time} ms, {share} of the kernels' time, "
        "{rate:,.3g} TFLOP/s at {intensity:,.3g} FLOP "
        "per byte, {launches}",
        label=point.label,
        time=amounts.table_ms(point.time_s),
        share=amounts.percent(_share(point, estimate)),
        rate=point.rate_flops_per_s / 1e12,
        intensity=point.intensity_flops_per_byte,
        launches=amounts.plural(point.launches, "launch", "launches"),
    )


def _label(
    estimate: Estimate, gpu: Gpu, ceilings: tuple[Roof, ...], points: list[RooflinePoint]
) -> str:
    parts = [
        say(
            "{label} at {intensity:,.3g} FLOP per byte and {rate:,.3g} TFLOP/s",
            label=p.label,
            intensity=p.intensity_flops_per_byte,
            rate=p.rate_flops_per_s / 1e12,
        )
        for p in points[:4]
    ]
    return say(
        "Roofline plot of {gpu} at {precision}: highest roof {roof:,.0f} "
        "TFLOP/s, memory {memory:,.0f} GB/s. Longest groups of "
        "kernels: {parts}.",
        gpu=gpu.name,
        precision=estimate.precision,
        roof=ceilings[0].flops_per_s / 1e12,
        memory=gpu.memory_bytes_per_s / 1e9,
        parts=amounts.listed(parts),
    )


def _table(estimate: Estimate) -> Table:
    rows = tuple(
        (
            point.label,
            f"{point.intensity_flops_per_byte:,.3g}",
            f"{point.rate_flops_per_s / 1e12:,.3g}",
            amounts.table_ms(point.time_s),
            amounts.percent(_share(point, estimate)),
            f"{point.launches:,}",
        )
        for point in sorted(estimate.roofline, key=lambda item: -item.time_s)
    )
    headings = (say("Kernel group"), "FLOP/byte", "TFLOP/s", "ms", say("Share"), say("Launches"))
    return Table(headings=headings, rows=rows)
