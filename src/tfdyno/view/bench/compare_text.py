"""A comparison as terminal text (verdicts, numbers, differences, doubts) and as a JSON document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.base.units import format_bytes, significant
from tfdyno.core.measure.measurement import Comparison, Measurement, Summary
from tfdyno.view.base.text import WIDTH, paint, pairs, table, wrapped
from tfdyno.words.base.amounts import listed
from tfdyno.words.base.language import say
from tfdyno.words.bench.comparison import interval_words, ratio_words, verdict_words
from tfdyno.words.bench.measurement import device_words, seconds_words, step_words, unit_of

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One measurement as the text shows it."""

    name: str
    """One letter."""
    place: str
    measurement: Measurement
    summary: Summary
    comparison: Comparison | None = None
    """None: the one that the others are compared with."""
    prices: tuple[str, ...] = ()
    """The prices in words; or one sentence that says why there is none."""
    estimate: str = ""
    """The gap in words; empty: none is told."""


def compare_text(columns: Sequence[Column], *, width: int = WIDTH, colour: bool = False) -> str:
    """Return all of a comparison.

    Args:
        columns: The measurements; the others are compared with the first.
        width: Columns of the screen.
        colour: Whether to print bold and dim.
    """
    base = columns[0]
    blocks = [
        "\n".join(_answer(base, one, width, colour) for one in columns[1:]),
        _numbers(columns, width, colour),
        *(_differences(base, one, width, colour) for one in columns[1:]),
        "\n".join(_doubt(one.name, doubt.text, width, colour)
                  for one in columns for doubt in one.summary.instabilities),
        _prices(columns, width),
        pairs(
            [(say("{name} estimated", name=one.name), one.estimate) for one in columns],
            width=width,
        ),
        pairs([(one.name, _place(one)) for one in columns], width=width),
    ]  # fmt: skip
    return "\n\n".join(block for block in blocks if block)


def _answer(base: Column, one: Column, width: int, colour: bool) -> str:
    found = one.comparison
    if found is None:
        return ""
    head = paint(wrapped(verdict_words(base.name, one.name, found), width=width), "bold",
                 colour=colour)  # fmt: skip
    if found.verdict == "not_comparable":
        return head
    said = say(
        "{reason}; paired: their runs alternated."
        if found.paired
        else "{reason}; their runs did not alternate.",
        reason=found.reason.rstrip(".。"),
    )
    if found.scaling_efficiency_ratio is not None:
        counts = [side.measurement.task.replica_count for side in (base, one)]
        said += say(
            " Scaling efficiency from {first} to {last} replicas: {share:.0f} %.",
            first=counts[0],
            last=counts[1],
            share=100 * found.scaling_efficiency_ratio,
        )
    return f"{head}\n{wrapped(said, width=width, first='  ', rest='  ')}"


def _numbers(columns: Sequence[Column], width: int, colour: bool) -> str:
    headers = ["", say("step"), say("95 % interval"), say("speed"), say("against A"),
               say("99 % interval"), say("runs"), say("memory||of a run"), say("first step"),
               ]  # fmt: skip
    rows = [_row(one) for one in columns]
    if all(one.comparison is None for one in columns):
        headers, rows = headers[:4] + headers[6:], [row[:4] + row[6:] for row in rows]
    return table(headers, rows, align="<" + ">" * 8, width=width,
                 spare=(len(headers) - 1, len(headers) - 2, 2), colour=colour)  # fmt: skip


def _row(one: Column) -> list[str]:
    told = one.summary
    best, bounds = step_words(told.median_s, told.interval_s)
    compares = one.comparison is not None and one.comparison.verdict != "not_comparable"
    found = one.comparison if compares else None
    unit = say(unit_of(one.measurement.task))
    return [
        one.name,
        best,
        bounds,
        f"{significant(told.throughput_per_s)} {unit}/s",
        ratio_words(found.ratio) if found else "–",
        interval_words(found.interval) if found else "–",
        str(told.run_count),
        format_bytes(told.peak_memory_bytes),
        seconds_words(told.first_step_s),
    ]


def _differences(base: Column, one: Column, width: int, colour: bool) -> str:
    found = one.comparison
    if found is None or not found.differences:
        return ""
    return table([say("differs"), base.name, one.name], found.differences, width=width, elastic=2,
                 colour=colour)  # fmt: skip


def _doubt(name: str, text: str, width: int, colour: bool) -> str:
    mark = paint("!", "yellow", colour=colour)
    return wrapped(text, width=width, first=f"{mark} {name}: ", rest="  ")


def _prices(columns: Sequence[Column], width: int) -> str:
    """Return what each costs; those with the same reason for having no price together."""
    words = dict.fromkeys(text for one in columns for text in one.prices)
    rows = [(listed([one.name for one in columns if text in one.prices]), text) for text in words]
    cost = [
        (say("{names} costs" if len(names) == 1 else "{names} cost", names=names), text)
        for names, text in rows
    ]
    return pairs(cost, width=width)


def _place(one: Column) -> str:
    measured = one.measurement
    name = measured.label or measured.task.title
    return say(
        "{name} ({id}) on {where}, {date}, {place}",
        name=name,
        id=measured.id[:6],
        where=device_words(measured.environment),
        date=measured.created_at[:10],
        place=one.place,
    )


def compare_document(columns: Sequence[Column]) -> dict[str, Any]:
    """Write ``{"ratio", "interval", "verdict", ..., "measurements": […], "comparisons": […]}``.

    The keys of the first comparison stand at the top; ``comparisons`` holds one of every later
    measurement with the first, which is there with its name, id and summary.
    """
    compared = [(one.name, one.comparison) for one in columns if one.comparison is not None]
    comparisons = [
        {"base": columns[0].name, "other": name, **to_builtins(found)} for name, found in compared
    ]
    return {
        **(to_builtins(compared[0][1]) if compared else {}),
        "measurements": [_measurement(one) for one in columns],
        "comparisons": comparisons,
    }


def _measurement(one: Column) -> dict[str, Any]:
    measured = one.measurement
    return {
        "name": one.name,
        "place": one.place,
        "id": measured.id,
        "label": measured.label,
        "title": measured.task.title,
        "batch_size": measured.task.batch_size,
        "replica_count": measured.task.replica_count,
        **to_builtins(one.summary),
    }
