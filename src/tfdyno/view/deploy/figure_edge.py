"""The measured times of a model on this CPU as bars, by number of threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.draw import bars
from tfdyno.view.draw.svg import Figure, Key, Table
from tfdyno.words.base.amounts import short_time, step_unit
from tfdyno.words.deploy.edge import span_words, threads_words

if TYPE_CHECKING:
    from tfdyno.core.deploy.edge import EdgeReport, EdgeTiming


def measured_figure(report: EdgeReport) -> Figure | None:
    """Return median call by threads with its 96 % interval; None where nothing was measured."""
    if not report.timings:
        return None
    longest_s = max(max(one.median_s, one.interval_s[1]) for one in report.timings)
    factor_s, unit = step_unit(longest_s)
    chart = bars.absolute(
        tuple(_row(one, factor_s) for one in report.timings), f"{unit} for a call with one sample"
    )
    told = "; ".join(_words(one) for one in report.timings)
    return bars.bar_figure(
        chart,
        label=f"Bars of the time of a call on this CPU by threads. {told}.",
        key=(
            Key(text="median of the rounds", variable="c1"),
            Key(text="its 96 % interval", variable="ink", mark="line"),
        ),
        table=table_of(report),
        caption=f"LiteRT on {report.cpu}",
    )


def table_of(report: EdgeReport) -> Table:
    """Return all that was measured."""
    rows = tuple(
        (threads_words(one), short_time(one.median_s),
         span_words(one.interval_s),
         f"{one.rounds}", f"{one.calls:,}")
        for one in report.timings
    )  # fmt: skip
    return Table(headings=("Threads", "Median", "96 % interval", "Rounds", "Calls"), rows=rows)


def _row(one: EdgeTiming, factor_s: float) -> bars.Row:
    segment = bars.Segment(variable="c1", value=one.median_s / factor_s, tip=_words(one))
    low, high = one.interval_s
    return bars.Row(name=threads_words(one), number=short_time(one.median_s), segments=(segment,),
                    low=low / factor_s, high=high / factor_s)  # fmt: skip


def _words(one: EdgeTiming) -> str:
    return (
        f"{threads_words(one)}: {short_time(one.median_s)}, {span_words(one.interval_s)} "
        f"in {one.rounds} rounds"
    )
