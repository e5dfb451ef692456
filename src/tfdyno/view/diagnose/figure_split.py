"""Where the time of a step goes: one bar before the fixes, one after, and computing by class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.diagnose.words import class_words, shares
from tfdyno.view.draw.bars import BarChart, Row, Segment, absolute, bar_figure
from tfdyno.view.draw.svg import Figure, Key, Table
from tfdyno.words.base.amounts import capital, listed, percent, step_unit
from tfdyno.words.bench.measurement import seconds_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.measure.bottleneck import StepDiagnosis
    from tfdyno.view.diagnose.document import DiagnoseReport

GROUPS = (
    ("computing", "c1", ("compute",)),
    ("waiting for data", "c2", ("input", "copy")),
    ("callbacks, validation, checkpoints", "c3", ("callback", "validation", "checkpoint")),
    ("exchange between replicas", "c4", ("communication",)),
    ("Python and launching", "c5", ("host", "launch")),
    ("tracing again", "bad", ("retrace",)),
    ("not looked into", "c5", ("unseen",)),
)
"""Words, colour and parts of a split, in stacking order."""
_BEFORE, _AFTER = "as it is", "with what was kept"
_MEASURED = ("measured as a whole", "c5")


def split_figure(told: DiagnoseReport) -> Figure:
    """Return the step before, and with what was kept where a fix was."""
    before, after = told.proven.diagnosis, told.proven.after
    measured_s = 0.0 if after else kept_step_s(told)
    factor_s, unit = step_unit(before.step_s)
    rows = [_row(_BEFORE, before, factor_s)]
    if after:
        rows.append(_row(_AFTER, after, factor_s))
    if measured_s:
        words, colour = _MEASURED
        tip = f"{_AFTER}: {seconds_words(measured_s)}, {words}"
        segment = Segment(variable=colour, value=measured_s / factor_s, tip=tip)
        rows.append(Row(name=_AFTER, number=seconds_words(measured_s), segments=(segment,)))
    chart = absolute(tuple(rows), f"{unit} of one step")
    shown = [one for one in (before, after) if one]
    key = [Key(text=words, variable=colour) for words, colour, parts in GROUPS
           if any(one.split_s.get(part, 0.0) > 0 for one in shown for part in parts)]  # fmt: skip
    if measured_s:
        key.append(Key(text=_MEASURED[0], variable=_MEASURED[1]))
    return bar_figure(
        chart,
        label=_label(told, measured_s),
        key=tuple(key),
        table=_table(shown, measured_s),
        caption="One step, by what it spends its time on",
    )


def kept_step_s(told: DiagnoseReport) -> float:
    """Return the median step of the last change kept, as its proof has it; 0.0: none was."""
    return next((one.after_s for one in reversed(told.proven.proofs) if one.kept), 0.0)


def _row(name: str, one: StepDiagnosis, factor_s: float) -> Row:
    segments = []
    for words, colour, parts in GROUPS:
        seconds_s = sum(one.split_s.get(part, 0.0) for part in parts)
        if seconds_s > 0:
            share = percent(seconds_s / one.step_s)
            tip = f"{words}: {seconds_words(seconds_s)}, {share}"
            value = seconds_s / factor_s
            segments.append(Segment(variable=colour, value=value, numeral=share, tip=tip))
    return Row(name=name, number=seconds_words(one.step_s), segments=tuple(segments), strong=True)


def _label(told: DiagnoseReport, measured_s: float) -> str:
    before, after = told.proven.diagnosis, told.proven.after
    said = [f"a step takes {seconds_words(before.step_s)}: {_parts(before)}"]
    if after:
        said.append(f"{_AFTER} {seconds_words(after.step_s)}: {_parts(after)}")
    elif measured_s:
        said.append(f"{_AFTER} {seconds_words(measured_s)}, measured as a whole")
    return f"Stacked bars of one step, whose parts add up to it; {'; '.join(said)}."


def _parts(one: StepDiagnosis) -> str:
    return listed([f"{name} {share}%" for name, share in shares(one.split_s)])


def _table(shown: Sequence[StepDiagnosis], measured_s: float) -> Table:
    names = [name for name in shown[0].split_s if any(one.split_s.get(name) for one in shown)]
    headings, columns = ["Part"], list[list[str]]()
    for title, one in zip((_BEFORE, _AFTER), shown, strict=False):
        share = dict(shares(one.split_s))
        headings += [capital(title), "Share"]
        columns.append([seconds_words(one.split_s.get(name, 0.0)) for name in names]
                       + [seconds_words(one.step_s)])  # fmt: skip
        columns.append([f"{share.get(name, 0)}%" for name in names] + ["100%"])
    if measured_s:
        headings.append(capital(_AFTER))
        columns.append(["–"] * len(names) + [seconds_words(measured_s)])
    rows = zip([*names, "whole step"], *columns, strict=True)
    return Table(headings=tuple(headings), rows=tuple(rows))


def compute_figure(one: StepDiagnosis) -> Figure | None:
    """Draw computing by class of operation; None where no profile was made."""
    known = {name: seconds_s for name, seconds_s in one.compute_s.items() if seconds_s > 0}
    if not known:
        return None
    chart = _classes(known)
    parts = [f"{row.name} {row.number}" for row in chart.rows]
    return bar_figure(
        chart,
        label=f"Bars of the computing of one step by class of operation: {listed(parts)}.",
        table=Table(
            headings=("Operations", "Of a step", "Share of computing"),
            rows=tuple((row.name, *row.number.split(" · ")) for row in chart.rows),
        ),
        caption="Computing by class of operation",
    )


def _classes(known: Mapping[str, float]) -> BarChart:
    total_s = sum(known.values())
    ordered = sorted(known.items(), key=lambda item: -item[1])
    factor_s, unit = step_unit(ordered[0][1])
    rows = tuple(
        Row(
            name=class_words(name),
            number=f"{seconds_words(seconds_s)} · {percent(seconds_s / total_s)}",
            segments=(Segment(variable="c1", value=seconds_s / factor_s,
                              tip=f"{class_words(name)}: {seconds_words(seconds_s)}"),),
        )
        for name, seconds_s in ordered
    )  # fmt: skip
    return absolute(rows, f"{unit} of one step")
