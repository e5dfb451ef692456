"""Figures of a joined report that no single command has: offers, trials, one figure over runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.units import HOUR_S, significant
from tfdyno.view.draw import bars
from tfdyno.view.draw.svg import Figure, Key, Table
from tfdyno.words.base.amounts import table_usd
from tfdyno.words.bench.measurement import seconds_words
from tfdyno.words.project.answers import figure_of, settings_words
from tfdyno.words.project.key_figures import each, number, part, picked
from tfdyno.words.project.report import bounds_words, figure_words, value_words, when

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tfdyno.core.project.report import KeyFigure, RunTold

    Raw = Mapping[str, Any]

_MOST = 8
"""Bars of a figure."""


def offers_figure(document: Raw) -> Figure | None:
    """Draw cost on each GPU's cheapest offer; None where no price is known.

    Of the whole training, or of a month of a service.
    """
    found: dict[tuple[object, object], Raw] = {}
    for one in each(document, "ranking"):
        cost, held = number(one, "cost_usd"), found.get((one.get("gpu"), one.get("count")))
        is_cheaper = cost and (held is None or cost < (number(held, "cost_usd") or 0.0))
        if is_cheaper and one.get("verdict") == "feasible":
            found[one.get("gpu"), one.get("count")] = one
    if not found:
        return None
    pick = picked(document)
    rows = []
    for one in sorted(found.values(), key=lambda one: number(one, "cost_usd") or 0.0)[:_MOST]:
        count = number(one, "count") or 1
        name = f"{count:g} x {one.get('gpu_name')}" if count > 1 else str(one.get("gpu_name"))
        is_pick = all(one.get(key) == pick.get(key) for key in ("gpu", "count"))
        rows.append((name, one, is_pick))
    return _offers(rows)


def _offers(rows: list[tuple[str, Raw, bool]]) -> Figure:
    dearest_usd = max(number(one, "cost_usd") or 0.0 for _, one, _ in rows)
    factor, unit = (100.0, "cents") if dearest_usd < 1.0 else (1.0, "US$")
    is_service = all("cost_usd_range" not in one for _, one, _ in rows)
    shown, lines = [], []
    for name, one, is_pick in rows:
        usd = number(one, "cost_usd") or 0.0
        low, high = (number(one, "cost_usd_range", key) or 0.0 for key in ("low", "high"))
        offer = f"{one.get('provider')} {one.get('instance')}{', spot' if one.get('spot') else ''}"
        text = f"{significant(usd * factor)} {unit}"
        segment = bars.Segment(variable="c1" if is_pick else "c5", value=usd * factor,
                               tip=f"{name}: {text}, {offer}")  # fmt: skip
        shown.append(bars.Row(name=name, number=text, segments=(segment,), low=low * factor,
                              high=high * factor, strong=is_pick))  # fmt: skip
        time_s = number(one, "p99_s") if is_service else (number(one, "hours") or 0.0) * HOUR_S
        range_words = f"{table_usd(low)}–{table_usd(high)}" if high else "–"
        lines.append((name, offer, table_usd(usd), range_words, seconds_words(time_s or 0.0)))
    what = "a month" if is_service else "the whole training"
    chart = bars.absolute(tuple(shown), f"{unit} for {what}")
    said = "; ".join(f"{name} {row.number}" for row, (name, *_) in zip(shown, lines, strict=True))
    bounds = () if is_service else (Key(text="9-in-10 range", variable="ink", mark="line"),)
    return bars.bar_figure(
        chart,
        label=f"Bars of the estimated cost of {what} by GPU. {said}.",
        key=(Key(text="our pick", variable="c1"), Key(text="others", variable="c5"), *bounds),
        table=Table(headings=("GPU", "Cheapest offer", "US$", "9 in 10",
                              "p99" if is_service else "Time"),
                    rows=tuple(lines), text_columns=frozenset((0, 1))),
        caption=f"Cost of {what} on the cheapest offer of each GPU",
    )  # fmt: skip


def trials_figure(document: Raw) -> Figure | None:
    """Return speed of the trials of a tuning, the fastest first; None where none was measured."""
    best = _settings(part(document, "best"))
    measured = [
        (_settings(one), rate)
        for one in each(document, "trials")
        if one.get("status", "measured") == "measured" and (rate := number(one, "samples_per_s"))
    ]
    if not measured:
        return None
    measured.sort(key=lambda one: -one[1])
    rows = tuple(
        bars.Row(name=name, number=f"{significant(rate)}", strong=name == best,
                 segments=(bars.Segment(variable="c1" if name == best else "c5", value=rate,
                                        tip=f"{name}: {significant(rate)} samples/s"),))
        for name, rate in measured[:_MOST]
    )  # fmt: skip
    chart = bars.absolute(rows, "samples per second")
    lines = tuple(
        (_settings(one), str(one.get("status", "")).replace("_", " "),
         f"{significant(rate)}" if (rate := number(one, "samples_per_s")) else "–",
         str(one.get("reason", "")))
        for one in each(document, "trials")
    )  # fmt: skip
    said = "; ".join(f"{name} {significant(rate)}" for name, rate in measured[:_MOST])
    return bars.bar_figure(
        chart,
        label=f"Bars of the measured samples per second of {len(rows)} trials. {said}.",
        key=(Key(text="the best", variable="c1"), Key(text="others", variable="c5")),
        table=Table(headings=("Settings", "Outcome", "Samples/s", "Why"), rows=lines,
                    text_columns=frozenset((0, 1, 3))),
        caption="Speed of the trials, the fastest first",
    )  # fmt: skip


def _settings(trial: Raw) -> str:
    return settings_words(trial.get("changes")) or "as it is"


def runs_figures(history: Sequence[RunTold], shown: str) -> tuple[Figure, ...]:
    """Return the speed that each bench measured in the runs: one figure per step and machine.

    One that only one run measured has none: what was reused was not measured again.

    Args:
        history: Runs, in the order of the bars.
        shown: Id of the one that is told.
    """
    found: dict[tuple[str, str], list[tuple[RunTold, KeyFigure]]] = {}
    for told in history:
        for step in told.steps:
            rate = figure_of(step, "throughput") if step.kind == "bench" else None
            if rate and step.run.status == "finished":
                found.setdefault((step.run.step, rate.place), []).append((told, rate))
    return tuple(_runs_figure(name, place, measured, shown)
                 for (name, place), measured in found.items() if measured[1:])  # fmt: skip


def _runs_figure(
    name: str, place: str, measured: list[tuple[RunTold, KeyFigure]], shown: str
) -> Figure:
    rows = tuple(
        bars.Row(name=told.run.id, number=value_words(rate), strong=told.run.id == shown,
                 low=rate.low or 0.0, high=rate.high or 0.0,
                 segments=(bars.Segment(variable="c1", value=rate.value,
                                        tip=f"{told.run.id}: {figure_words(rate)}"),))
        for told, rate in measured
    )  # fmt: skip
    # With the intervals as limits, so that the axis reaches to their ends.
    axis = bars.absolute(rows, "samples per second", limit=max(row.high for row in rows))
    chart = replace(axis, limit=0.0)
    said = "; ".join(f"{told.run.id} {figure_words(rate)}" for told, rate in measured)
    where = f" on {place}" if place else ""
    return bars.bar_figure(
        chart,
        label=f"Bars of the throughput that {name} measured{where} in {len(rows)} runs. {said}.",
        key=(Key(text="samples per second", variable="c1"),
             Key(text="its 95 % interval", variable="ink", mark="line")),
        table=Table(
            headings=("Run", "When (UTC)", "Throughput", "Interval"),
            rows=tuple((told.run.id, when(told.run.started_at), value_words(rate),
                        bounds_words(rate)) for told, rate in measured),
            text_columns=frozenset((0, 1)),
        ),
        caption=f"Throughput of {name}, each time that it was measured anew{where}",
    )  # fmt: skip
