"""The page of ``tfdyno edge``: where a model fits, what bounds it there, what it takes here."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes, format_si
from tfdyno.core.deploy.edge_document import edge_document
from tfdyno.view.base.template import page
from tfdyno.view.choose.sections import Section, section
from tfdyno.view.choose.sentences import Finding
from tfdyno.view.deploy.figure_edge import measured_figure
from tfdyno.view.draw.svg import Table
from tfdyno.words.base.amounts import listed, short_time
from tfdyno.words.deploy.edge import (
    BOUND,
    GUESSED,
    MARK,
    class_words,
    shape_words,
    span_words,
    threads_words,
    unverified_words,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.deploy.edge import EdgeReport, EdgeVerdict

_NAMED = 4
"""Devices that the headline names."""


def edge_page(report: EdgeReport, *, date: str, version: str) -> str:
    """Make the page; it loads nothing from anywhere and reads without JavaScript.

    Args:
        report: The answer.
        date: On which it was given.
        version: Of tfdyno.
    """
    need = report.need
    arithmetic = need.float_arithmetic + need.integer_arithmetic
    return page(
        "edge",
        edge_document(report),
        reference=report.model,
        setup=(format_bytes(need.file_bytes), f"{format_si(arithmetic, 'op')} a sample"),
        date=date,
        headline=headline(report.verdicts),
        answer=_answer(report),
        sections=(_fit(report.verdicts), *_reasons(report.verdicts), _here(report),
                     _needs(report), _devices(report.verdicts)),
        notes=_notes(report),
        commands=_commands(report),
        version=version,
    )  # fmt: skip


def headline(verdicts: Sequence[EdgeVerdict]) -> str:
    """Say on how many devices it fits, by name where they are few."""
    fits = [one.device for one in verdicts if one.fits]
    lost = [one.device for one in verdicts if not one.fits]
    if not fits:
        return f"It fits on none of {len(lost)} devices" if len(lost) > 1 else (
            f"It does not fit on {lost[0]}")  # fmt: skip
    if not lost:
        whole = f"It fits on all {len(fits)} devices"
        return whole if len(fits) > _NAMED else f"It fits on {listed(fits)}"
    if len(lost) <= _NAMED:
        return f"It fits on {len(fits)} of {len(verdicts)} devices, not on {listed(lost)}"
    return f"It fits on {len(fits)} of {len(verdicts)} devices"


def _answer(report: EdgeReport) -> str:
    if not report.timings:
        return f"Nothing was measured. {GUESSED}"
    best = min(report.timings, key=lambda one: one.median_s)
    return (
        f"A call with one sample takes {short_time(best.median_s)} on this CPU with "
        f"{threads_words(best)}. {GUESSED}"
    )


def _fit(verdicts: Sequence[EdgeVerdict]) -> Section:
    rows = tuple(
        (f"{one.device} {MARK}" if one.unverified else one.device, "yes" if one.fits else "no",
         span_words(one.latency_s), class_words(one),
         BOUND[one.bound_by], _of(one.memory_needed_bytes, one.memory_bytes))
        for one in verdicts
    )  # fmt: skip
    headings = ("Device", "Fits", "Expected", "Class", "Bound by", "Memory")
    table = Table(headings=headings, rows=rows, text_columns=frozenset((0, 1, 3, 4)))
    bounds = [BOUND[one.bound_by] for one in verdicts]
    told = listed([f"{bounds.count(one)} by {one}" for one in dict.fromkeys(bounds)])
    lead = (
        f"Of {len(bounds)} devices, bound: {told}. Real time is below 33 ms, interactive below "
        f"200 ms; two words where the range spans them. {unverified_words(verdicts)}"
    ).rstrip()
    finding = Finding(heading="Where it fits, and what bounds it there", lead=lead)
    return section("fit", "Devices", finding, table=table)


def _devices(verdicts: Sequence[EdgeVerdict]) -> Section:
    rows = tuple(
        (one.device, one.name, one.runtime,
         _of(one.storage_needed_bytes, one.storage_bytes) if one.storage_bytes else "–",
         one.unverified or "–")
        for one in verdicts
    )  # fmt: skip
    table = Table(headings=("Device", "Is", "Runs by", "Flash", "Unverified"), rows=rows,
                  text_columns=frozenset((0, 1, 2, 4)))  # fmt: skip
    finding = Finding(heading="What the devices are", lead="Flash is counted where program and "
                      "model share it; elsewhere a file system holds them.")  # fmt: skip
    return section("devices", "Names", finding, table=table)


def _of(needed_bytes: int, bytes_: int) -> str:
    return f"{format_bytes(needed_bytes)} of {format_bytes(bytes_)}"


def _reasons(verdicts: Sequence[EdgeVerdict]) -> tuple[Section, ...]:
    rows = tuple(
        (one.device, " ".join(one.obstacles), " ".join(one.advice) or "–")
        for one in verdicts
        if one.obstacles
    )
    if not rows:
        return ()
    table = Table(headings=("Device", "Why", "What to do"), rows=rows,
                  text_columns=frozenset((0, 1, 2)))  # fmt: skip
    finding = Finding(heading="Why it does not fit elsewhere", lead="Each obstacle, with a remedy "
                      "where one is known.")  # fmt: skip
    return (section("reasons", "Obstacles", finding, table=table),)


def _here(report: EdgeReport) -> Section:
    drawn = measured_figure(report)
    lead = (
        f"LiteRT on {report.cpu}, one sample a call, the numbers of threads in turns: medians of "
        "rounds with their 96 % interval."
        if drawn
        else "The model was not run here."
    )
    finding = Finding(heading="What it takes on this CPU", lead=lead)
    return section("here", "Measured", finding, drawn, topic="Measured here")


def _needs(report: EdgeReport) -> Section:
    need = report.need
    rows = [
        ("File", f"{format_bytes(need.file_bytes)}, weights {format_bytes(need.weight_bytes)}"),
        ("Values at once", f"{format_bytes(need.live_bytes)}, at {need.peak_operator}"),
        ("LiteRT's arena here", format_bytes(need.arena_bytes) if need.arena_bytes else "–"),
        ("Arithmetic in floats", format_si(need.float_arithmetic, "op")),
        ("Arithmetic in 8 bits", format_si(need.integer_arithmetic, "op")),
        ("Operators", f"{need.operators:,}: {', '.join(need.kinds)}"),
        *((f"Input {one.name}", shape_words(one)) for one in report.inputs),
        *((f"Output {one.name}", shape_words(one)) for one in report.outputs),
    ]
    table = Table(headings=("What", "Value"), rows=tuple(rows), text_columns=frozenset((0, 1)))
    finding = Finding(heading="What one sample needs", lead="Read from the file itself.")
    return section("needs", "Needs", finding, table=table)


def _notes(report: EdgeReport) -> list[str]:
    told = [GUESSED]
    if report.need.loops_unknown:
        told.append("A loop runs as often as its data says: it is counted once.")
    if report.float_operators and report.need.integer_arithmetic:
        told.append(f"Still in floats: {', '.join(report.float_operators)}.")
    if report.converted_from:
        told.append(f"{report.model} was converted to floats first; tfdyno export --to "
                    "litert-int8 makes it smaller.")  # fmt: skip
    sources = dict.fromkeys(f"{one.name}: {one.source}" for one in report.verdicts if one.source)
    return [*told, *sources]


def _commands(report: EdgeReport) -> list[tuple[str, str]]:
    model = shlex.quote(report.model)
    fits = [one.device for one in report.verdicts if one.fits]
    made = []
    if fits:
        made.append((f"tfdyno edge {model} --device {','.join(fits[:3])} --write out",
                     "Write the model with code for devices"))  # fmt: skip
    if report.converted_from:
        made.append((f"tfdyno export {model} --to litert-int8 --data test.npz --output "
                     "model.tflite", "Shrink it to 8 bits, judged on your rows"))  # fmt: skip
    return made
