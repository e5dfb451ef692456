"""The page of an export: the trade-off of its formats, the outputs, what it was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.base.template import page
from tfdyno.view.choose.sections import Section, section
from tfdyno.view.choose.sentences import Finding
from tfdyno.view.deploy.export_text import export_document
from tfdyno.view.deploy.figure_export import table_of, trade_off_figure
from tfdyno.view.draw.svg import Table
from tfdyno.words.bench.measurement import environment_words, seconds_words
from tfdyno.words.deploy.export import (
    about,
    accuracy_lines,
    answer,
    commands,
    difference_words,
    fastest_words,
    headline,
    notes,
    percent_words,
    ratio_words,
)

if TYPE_CHECKING:
    from tfdyno.core.deploy.export import ExportResult


def export_page(found: ExportResult) -> str:
    """Make the page; it loads nothing from anywhere and reads without JavaScript."""
    source = found.source
    setup = [source.title]
    if source.parameter_count:
        setup.append(f"{source.parameter_count:,} parameters")
    setup.append(", ".join(one.format for one in found.artefacts))
    return page(
        "export",
        export_document(found),
        reference=source.reference,
        setup=tuple(setup),
        date=found.created_at[:10],
        headline=headline(found),
        answer=answer(found),
        failures=[f"{one.format} is not kept: {text}." for one in found.artefacts
                     for text in one.failures],
        sections=(_trade_off(found), _outputs(found), _times(found), _made(found)),
        notes=notes(found),
        commands=commands(found),
        version=found.tfdyno,
    )  # fmt: skip


def _trade_off(found: ExportResult) -> Section:
    drawn = trade_off_figure(found)
    stands = [one for one in found.artefacts if one.kept] or list(found.artefacts)
    smallest = min(stands, key=lambda one: one.size_bytes)
    parts = [fastest_words(stands)] if any(one.verification.latencies for one in stands) else []
    if len(stands) > 1 or not parts:
        parts.append(f"{smallest.format} is the smallest")
    heading = "; ".join(parts)
    worst = max(found.artefacts, key=lambda one: one.verification.max_abs)
    lead = (
        f"The outputs of {worst.format} are {difference_words(worst.verification.max_abs)} off "
        "at most. "
    )
    lead += accuracy_lines(found)
    finding = Finding(heading=heading, lead=lead)
    return section("trade", "Trade-off", finding, drawn, table=None if drawn else table_of(found))


def _outputs(found: ExportResult) -> Section:
    compared = [(one, each) for one in found.artefacts for each in one.verification.differences]
    names_classes = any(each.top1_ratio is not None for _, each in compared)
    rows = tuple(
        (one.format, each.output, difference_words(each.max_abs), difference_words(each.mean_abs),
         difference_words(each.max_relative_ratio),
         *(["–" if each.top1_ratio is None else percent_words(each.top1_ratio)] * names_classes))
        for one, each in compared
    )  # fmt: skip
    first = found.artefacts[0].verification
    finding = Finding(
        heading=f"Every output on {first.data}",
        lead="The same inputs went through the model and through what was written. Relative is "
        "the largest difference over the largest value of the model's own output.",
    )
    headings = ("Format", "Output", "Largest", "Mean", "Relative",
                *(["Same top-1"] * names_classes))  # fmt: skip
    table = Table(headings=headings, rows=rows, text_columns=frozenset((0, 1)))
    return section("outputs", "Outputs", finding, table=table)


def _times(found: ExportResult) -> Section:
    rows = tuple(
        (one.format, f"{each.batch_size}", seconds_words(each.original_s.best),
         seconds_words(each.exported_s.best), ratio_words(each), f"{each.rounds} × {each.calls}")
        for one in found.artefacts for each in one.verification.latencies
    )  # fmt: skip
    lead = (
        "Model and export were called in turns, from arrays to arrays, the model as a TensorFlow "
        "graph. In brackets the 95 % interval of the ratio over the rounds. A server adds its own."
        if rows
        else "No call was timed."
    )
    headings = ("Format", "Batch", "Model", "Export", "Ratio", "Rounds × calls")
    table = Table(headings=headings, rows=rows)
    finding = Finding(heading="Time of a call on this machine's CPU", lead=lead)
    return section("times", "Time", finding, table=table)


def _made(found: ExportResult) -> Section:
    source = found.source
    rows = [(name.capitalize(), value) for name, value in about(found) if value]
    rows += [("SHA-256 of the source", source.sha256 or "–"),
             ("SHA-256 of the weights", source.weights_sha256 or "–")]  # fmt: skip
    rows += [(f"SHA-256 of {one.format}", one.sha256) for one in found.artefacts if one.kept]
    if found.environment:
        rows.append(("Environment", environment_words(found.environment)))
    table = Table(headings=("What", "Value"), rows=tuple(rows), text_columns=frozenset((0, 1)))
    finding = Finding(heading="What it was made from",
                      lead="The same stands in export.json with what was written.")  # fmt: skip
    return section("made", "Lineage", finding, table=table)
