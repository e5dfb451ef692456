"""Predicted against measured step time as small squares, one a card family, precision or model."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.catalog.gpus import find
from tfdyno.view.draw.palette import paint
from tfdyno.view.draw.plane import LogAxis, Plane, line, marks, spec
from tfdyno.view.draw.svg import Spec, draw
from tfdyno_truth import cells, judge
from tfdyno_truth.sheet import FRAMEWORKS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from tfdyno_truth.sheet import Judged

SIDE_PX = 252.0
BAND_RATIO = 1.25
"""The band around the diagonal: predictions within this factor."""
STYLE = {"tensorflow": ("c1", "circle", 26), "pytorch": ("c2", "triangle-up", 30)}
"""Framework -> colour, shape (for those who do not see the colour) and area of its marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """All rows of one workload on one card, geometric means."""

    framework: str
    measured_s: float
    predicted_s: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One square with its heading."""

    title: str
    errors: tuple[tuple[str, str], ...]
    """Framework -> mean error and number of groups, in words."""
    drawing: str
    label: str


def panels(judged: Judged, key: Callable[[int], str]) -> tuple[Panel, ...]:
    """A panel for every value of ``key``, worst first; all have the same axes."""
    index = np.flatnonzero(judged.main)
    names: defaultdict[str, list[int]] = defaultdict(list)
    for i in index:
        names[key(int(i))].append(int(i))
    board = _board(judged.design.log_step[index])
    errors = {name: _error(judged, mine) for name, mine in names.items()}
    return tuple(
        _panel(judged, name, names[name], board) for name in sorted(names, key=lambda n: -errors[n])
    )


def families(judged: Judged) -> tuple[Panel, ...]:
    """By generation of the card."""
    slugs = {row.slug: find(row.slug).architecture for row in judged.design.rows}
    return panels(judged, lambda index: slugs[judged.design.rows[index].slug])


def precisions(judged: Judged) -> tuple[Panel, ...]:
    """By precision."""
    return panels(judged, lambda index: judged.design.rows[index].precision)


def models(judged: Judged) -> tuple[Panel, ...]:
    """By class of model, training and inference apart."""
    design = judged.design
    mode = {"train": "training", "infer": "inference"}
    return panels(judged, lambda i: f"{design.families[i]}, {mode[design.rows[i].mode]}")


def _error(judged: Judged, index: list[int]) -> float:
    relative = np.abs(judged.predicted / np.exp(judged.design.log_step) - 1.0)
    return float(judge.by_group(judged.design, np.array(index), relative).mean())


def _board(log_step: np.ndarray) -> Plane:
    low, high = math.exp(log_step.min()) / 1.6, math.exp(log_step.max()) * 1.6
    return Plane(
        x=LogAxis(low, high, SIDE_PX),
        y=LogAxis(low, high, SIDE_PX),
        x_title="measured",
        y_title="predicted",
        x_words=_time,
        y_words=_time,
        left_px=46.0,
        right_px=10.0,
        tick_px=40.0,
    )


def _time(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1.0 else f"{1e3 * seconds:g} ms"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.{1 if seconds < 0.1 else 0}f}"


def _panel(judged: Judged, name: str, index: list[int], board: Plane) -> Panel:
    points = _points(judged, index)
    errors = []
    for framework, title in FRAMEWORKS.items():
        mine = [i for i in index if judged.design.rows[i].framework == framework]
        if mine:
            groups = len({judged.design.rows[i].group for i in mine})
            errors.append((title, f"{cells.share(_error(judged, mine))}, {groups} groups"))
    told = "; ".join(f"{title} mean error {words}" for title, words in errors)
    return Panel(
        title=name,
        errors=tuple(errors),
        drawing=draw(_spec(points, board)),
        label=f"Predicted against measured step time, {name}: {told}.",
    )


def _points(judged: Judged, index: Iterable[int]) -> list[Point]:
    """One point a group and execution, so that many batch sizes do not hide the rest."""
    members: defaultdict[Hashable, list[int]] = defaultdict(list)
    for i in index:
        row = judged.design.rows[i]
        members[
            row.framework, row.function, row.gpu, row.precision, row.mode, row.execution
        ].append(i)
    points = []
    for mine in members.values():
        row = judged.design.rows[mine[0]]
        measured = float(np.exp(judged.design.log_step[mine].mean()))
        predicted = float(np.exp(np.log(judged.predicted[mine]).mean()))
        points.append(
            Point(
                framework=row.framework,
                measured_s=measured,
                predicted_s=predicted,
                words=f"{FRAMEWORKS[row.framework]}: {row.function}, {row.gpu}, {row.precision}, "
                f"{row.mode}, {row.execution}: measured {_ms(measured)}, predicted "
                f"{_ms(predicted)} ms ({predicted / measured - 1:+.0%})",
            )
        )
    return points


def _spec(points: list[Point], board: Plane) -> Spec:
    low, high = board.x.low, board.x.high
    per_decade = board.x.length_px / math.log10(high / low)
    width = 2 * math.log10(BAND_RATIO) * per_decade / math.sqrt(2)
    diagonal = [board.point(low, low), board.point(high, high)]
    layers = [
        line(diagonal, color=paint("c5"), strokeWidth=width, opacity=0.3, strokeCap="butt"),
        line(diagonal, color=paint("muted"), strokeWidth=1),
    ]
    for framework in reversed(FRAMEWORKS):
        colour, shape, area = STYLE[framework]
        rows = [
            dict(zip(("x", "y"), board.point(p.measured_s, p.predicted_s), strict=True))
            | {"tip": p.words}
            for p in points
            if p.framework == framework
        ]
        if rows:
            mark = {"type": "point", "shape": shape, "size": area, "filled": True,
                    "color": paint(colour), "opacity": 0.62, "aria": True}  # fmt: skip
            layers.append(marks(mark, rows, description={"field": "tip"}))
    return spec(board, layers)
