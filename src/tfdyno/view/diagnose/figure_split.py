"""Where the time of a step goes: one bar before the fixes, one after, and computing by class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.diagnose.words import shares
from tfdyno.view.draw.bars import BarChart, Row, Segment, absolute, bar_figure
from tfdyno.view.draw.svg import Figure, Key, Table
from tfdyno.words.base.amounts import capital, listed, percent, step_unit
from tfdyno.words.base.language import say, say_later
from tfdyno.words.bench.measurement import seconds_words
from tfdyno.words.diagnose.steps import class_words, part_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.measure.bottleneck import StepDiagnosis
    from tfdyno.view.diagnose.document import DiagnoseReport

GROUPS = (
    (say_later("computing"), "c1", ("compute",)),
    (say_later("waiting for data"), "c2", ("input", "copy")),
    (
        say_later("callbacks, validation, checkpoints"),
        "c3",
        ("callback", "validation", "checkpoint"),
    ),
    (say_later("exchange between replicas"), "c4", ("communication",)),
    (say_later("Python and launching"), "c5", ("host", "launch")),
    (say_later("tracing again"), "bad", ("retrace",)),
    (say_later("not looked into"), "c5", ("unseen",)),
)
"""Words, colour and parts of a split, in stacking order."""
_BEFORE, _AFTER = say_later("as it is"), say_later("with what was kept")
_MEASURED = (say_later("measured as a whole"), "c5")


def split_figure(told: DiagnoseReport) -> Figure:
    """Return the step before, and with what was kept where a fix was."""
    before, after = told.proven.diagnosis, told.proven.after
    measured_s = 0.0 if after else kept_step_s(told)
    factor_s, unit = step_unit(before.step_s)
    rows = [_row(say(_BEFORE), before, factor_s)]
    if after:
        rows.append(_row(say(_AFTER), after, factor_s))
    if measured_s:
        words, colour = _MEASURED
        tip = say(
            "{name}: {time}, {what}",
            name=say(_AFTER),
            time=seconds_words(measured_s),
            what=say(words),
        )
        segment = Segment(variable=colour, value=measured_s / factor_s, tip=tip)
        rows.append(Row(name=say(_AFTER), number=seconds_words(measured_s), segments=(segment,)))
    chart = absolute(tuple(rows), say("{unit} of one step", unit=unit))
    shown = [one for one in (before, after) if one]
    key = [Key(text=say(words), variable=colour) for words, colour, parts in GROUPS
           if any(one.split_s.get(part, 0.0) > 0 for one in shown for part in parts)]  # fmt: skip
    if measured_s:
        key.append(Key(text=say(_MEASURED[0]), variable=_MEASURED[1]))
    return bar_figure(
        chart,
        label=_label(told, measured_s),
        key=tuple(key),
        table=_table(shown, measured_s),
        caption=say("One step, by what it spends its time on"),
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
            tip = say(
                "{name}: {time}, {what}", name=say(words), time=seconds_words(seconds_s), what=share
            )
            value = seconds_s / factor_s
            segments.append(Segment(variable=colour, value=value, numeral=share, tip=tip))
    return Row(name=name, number=seconds_words(one.step_s), segments=tuple(segments), strong=True)


def _label(told: DiagnoseReport, measured_s: float) -> str:
    before, after = told.proven.diagnosis, told.proven.after
    said = [
        say(
            "a step takes {step}: {parts}",
            step=seconds_words(before.step_s),
            parts=_parts(before),
        )
    ]
    if after:
        said.append(
            say(
                "with what was kept {step}: {parts}",
                step=seconds_words(after.step_s),
                parts=_parts(after),
            )
        )
    elif measured_s:
        said.append(
            say(
                "with what was kept {step}, measured as a whole",
                step=seconds_words(measured_s),
            )
        )
    return say(
        "Stacked bars of one step, whose parts add up to it; {said}.", said=say("; ").join(said)
    )


def _parts(one: StepDiagnosis) -> str:
    return listed([f"{part_name(name)} {share}%" for name, share in shares(one.split_s)])


def _table(shown: Sequence[StepDiagnosis], measured_s: float) -> Table:
    names = [name for name in shown[0].split_s if any(one.split_s.get(name) for one in shown)]
    headings, columns = [say("Part")], list[list[str]]()
    for title, one in zip((_BEFORE, _AFTER), shown, strict=False):
        share = dict(shares(one.split_s))
        headings += [capital(say(title)), say("Share")]
        columns.append([seconds_words(one.split_s.get(name, 0.0)) for name in names]
                       + [seconds_words(one.step_s)])  # fmt: skip
        columns.append([f"{share.get(name, 0)}%" for name in names] + ["100%"])
    if measured_s:
        headings.append(capital(say(_AFTER)))
        columns.append(["–"] * len(names) + [seconds_words(measured_s)])
    rows = zip([*map(part_name, names), say("whole step")], *columns, strict=True)
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
        label=say(
            "Bars of the computing of one step by class of operation: {parts}.", parts=listed(parts)
        ),
        table=Table(
            headings=(say("Operations"), say("Of a step"), say("Share of computing")),
            rows=tuple((row.name, *row.number.split(" · ")) for row in chart.rows),
        ),
        caption=say("Computing by class of operation"),
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
    return absolute(rows, say("{unit} of one step", unit=unit))
