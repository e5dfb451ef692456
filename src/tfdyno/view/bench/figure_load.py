"""A load test as pictures: latency over the rate, how latencies spread, rows in a batch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.core.measure.load import ACCEPTED
from tfdyno.view.draw.bars import Row, Segment, absolute, bar_figure
from tfdyno.view.draw.palette import paint
from tfdyno.view.draw.plane import area, dots, line, padded, plane, rules, spec
from tfdyno.view.draw.svg import Figure, Key, Spec, Table, draw
from tfdyno.words.base.language import say, say_later
from tfdyno.words.bench.load import (
    batch_rows,
    load_words,
    mark_of,
    ms,
    ms_range,
    plan_words,
    wrong_words,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.load import LoadResult, LoadStage
    from tfdyno.view.draw.plane import Plane

_LEAST_STAGES = 2
_LINES = (("p50_s", "c2"), ("p99_s", "c1"))
_BUCKETS = 14
"""The buckets of the spread of latencies."""


def rate_figure(result: LoadResult) -> Figure | None:
    """Draw p50 and p99 over the offered rate; None for fewer than two open loops."""
    stages = _curve(result)
    if len({one.run.plan.rate_per_s for one in stages}) < _LEAST_STAGES:
        return None
    limit = result.p99_limit_s
    keys = [
        Key(text="p50", variable="c2", mark="line"),
        Key(text="p99", variable="c1", mark="line"),
        Key(text=say("its 95 % interval"), variable="c1", mark="band"),
    ]
    if limit:
        keys.append(Key(text=say("the promised p99"), variable="muted", mark="dash"))
        keys.append(Key(text=say("hollow: promise broken"), variable="ink", mark="none"))
    return Figure(
        label=say("Latency by the rate of requests: {rates}.", rates=say("; ").join(
            say("{plan}: p50 {p50} ms, p99 {p99} ms", plan=plan_words(one.run.plan),
                p50=ms(one.figures.p50_s), p99=ms(one.figures.p99_s))
            for one in stages
        )),
        wide=draw(_spec(stages, limit, narrow=False)),
        narrow=draw(_spec(stages, limit, narrow=True)),
        key=tuple(keys),
        table=stages_table(result),
        caption=say("Latency of accepted requests by the rate that was offered"),
    )  # fmt: skip


def stages_table(result: LoadResult) -> Table:
    """Return every stretch with its figures."""
    rows = tuple(
        (
            _named(result, one),
            significant(one.figures.accepted_per_s),
            ms(one.figures.p50_s),
            ms(one.figures.p95_s),
            ms(one.figures.p99_s),
            ms_range(one.figures.p99_s),
            ms(one.figures.p999_s),
            f"{one.figures.refused_ratio:.1%}" if one.figures.refused else "–",
            wrong_words(one),
        )
        for one in result.stages
    )
    headings = (say("Load"), say("Answers/s"), "p50 ms", "p95 ms", "p99 ms", say("95 %"),
                "p99.9 ms", say("Refused"), say("Errors"))  # fmt: skip
    return Table(headings=headings, rows=rows, text_columns=frozenset((0,)))


def _named(result: LoadResult, stage: LoadStage) -> str:
    """Return the load of a stretch, and whether it kept the promise or is the largest to."""
    load = load_words(stage.run.plan)
    match mark_of(result, stage).strip():
        case "*":
            return say("knee: {load}", load=load)
        case "x":
            return say("broken: {load}", load=load)
    return load


def spread_figure(stage: LoadStage) -> Figure | None:
    """Return how many accepted requests took how long; None where none was."""
    run = stage.run
    known = [
        latency
        for start, latency, code in zip(run.start_s, run.latency_s, run.codes, strict=True)
        if code == ACCEPTED and start >= run.plan.warmup_s
    ]
    if not known:
        return None
    found = _buckets(known)
    rows = tuple(
        _bar(
            f"{significant(low * 1e3)}–{significant(high * 1e3)} ms",
            count,
            len(known),
            say_later("{name}: {count:,} requests"),
        )
        for low, high, count in found
    )
    return _bars(
        rows,
        title=say("% of the accepted requests"),
        caption=say("How long requests took: {plan}", plan=plan_words(run.plan)),
        headings=(say("Latency"), say("Requests")),
        counts=[count for _, _, count in found],
    )


def batches_figure(stage: LoadStage) -> Figure | None:
    """Return how many rows the server worked on at once; None where it does not tell."""
    found = batch_rows(stage)
    if not found:
        return None
    total = sum(count for _, count, _ in found)
    rows = tuple(
        _bar(
            say("{count} row" if name == "1" else "{count} rows", count=name),
            count,
            total,
            say_later("{name}: {count:,} batches"),
        )
        for name, count, _ in found
    )
    return _bars(
        rows,
        title=say("% of the batches"),
        caption=say(
            "Rows in a batch, by the server's own count: {plan}", plan=plan_words(stage.run.plan)
        ),
        headings=(say("Rows"), say("Batches")),
        counts=[count for _, count, _ in found],
    )


def _curve(result: LoadResult) -> list[LoadStage]:
    """Return the open loops by their rate; of one that was tried again, the try that decided."""
    last = {
        one.run.plan.rate_per_s: one
        for one in result.stages
        if one.run.plan.kind == "open" and one.figures.p99_s
    }
    return [last[rate] for rate in sorted(last)]


def _ends(one: LoadStage) -> tuple[float, float]:
    """Return the p99 interval's ends; without an upper one it is drawn to the worst seen."""
    assert one.figures.p99_s
    high = one.figures.p99_s.high
    return one.figures.p99_s.low, one.figures.worst_s if math.isinf(high) else high


def _spec(stages: Sequence[LoadStage], limit_s: float, *, narrow: bool) -> Spec:
    board = _board(stages, limit_s, narrow=narrow)
    layers: list[Spec] = []
    band = []
    for one in stages:
        (x, low), (_, high) = (board.point(one.run.plan.rate_per_s, end * 1e3)
                               for end in _ends(one))  # fmt: skip
        band.append((x, high, low))
    layers.append(area(band, color=paint("c1"), opacity=0.2))
    if limit_s:
        _, y = board.point(1.0, limit_s * 1e3)
        layers += rules([(0.0, y, board.x.length_px, y)], color=paint("muted"), strokeWidth=1.25,
                        strokeDash=[5, 4])  # fmt: skip
    for name, colour in _LINES:
        places = [board.point(one.run.plan.rate_per_s, getattr(one.figures, name).best * 1e3)
                  for one in stages]  # fmt: skip
        layers.append(line(places, color=paint(colour), strokeWidth=1.75))
        for filled in (True, False):
            shown = [place for place, one in zip(places, stages, strict=True)
                     if (one.holds is not False) is filled]  # fmt: skip
            layers += dots(shown, filled=filled, size=44, color=paint(colour), opacity=1)
    return spec(board, layers)


def _board(stages: Sequence[LoadStage], limit_s: float, *, narrow: bool) -> Plane:
    rates = [one.run.plan.rate_per_s for one in stages]
    # Of few requests nothing bounds the p50 below: there the least is 0, which has no logarithm.
    values = [end * 1e3 for one in stages if (p50 := one.figures.p50_s)
              for end in (p50.low or p50.best, _ends(one)[1])]  # fmt: skip
    values += [limit_s * 1e3] if limit_s else []
    return plane(
        x_range=padded(rates, below=1.15, above=1.15),
        y_range=padded(values, below=1.3, above=1.3),
        x_title=say("requests/s offered (log scale)"),
        y_title=say("latency, ms (log scale)"),
        x_words=lambda value: significant(value, 2),
        y_words=lambda value: significant(value, 2),
        narrow=narrow,
    )


def _buckets(known: Sequence[float]) -> list[tuple[float, float, int]]:
    """Cut equal steps of the logarithm from the least to the most: low, high, requests."""
    least, most = min(known), max(known)
    if most <= least * 1.01:
        return [(least, most, len(known))]
    step = math.log(most / least) / _BUCKETS
    counts = [0] * _BUCKETS
    for value in known:
        counts[min(_BUCKETS - 1, int(math.log(value / least) / step))] += 1
    edges = [least * math.exp(step * at) for at in range(_BUCKETS + 1)]
    return [(edges[at], edges[at + 1], count) for at, count in enumerate(counts)]


def _bar(name: str, count: int, total: int, tip: str) -> Row:
    share = 100.0 * count / total
    is_shown = share >= 0.1 or not count
    number = say("{share} %", share=f"{share:.1f}") if is_shown else f"{count:,}"
    segment = Segment(variable="c1", value=share, tip=say(tip, name=name, count=count))
    return Row(name=name, number=number, segments=(segment,) if count else ())


def _bars(
    rows: tuple[Row, ...], *, title: str, caption: str, headings: tuple[str, str],
    counts: Sequence[int],
) -> Figure:  # fmt: skip
    chart = absolute(rows, title)
    cells = zip(rows, counts, strict=True)
    return bar_figure(
        chart,
        label=say(
            "{caption}: {rows}.",
            caption=caption,
            rows=say(", ").join(f"{row.name} {row.number}" for row in rows),
        ),
        table=Table(
            headings=(*headings, say("Share")),
            rows=tuple((row.name, f"{count:,}", row.number) for row, count in cells),
        ),
        caption=caption,
    )
