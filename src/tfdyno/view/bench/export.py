"""Measurements as files: JSON with everything, CSV with a row per sample, Markdown to paste."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import format_bytes
from tfdyno.core.measure.measurement_document import document_of
from tfdyno.view.bench.text import facts, headline
from tfdyno.words.base.language import say
from tfdyno.words.bench.comparison import side_names, verdict_words
from tfdyno.words.bench.measurement import metric_words, seconds_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tfdyno.core.measure.measurement import Comparison
    from tfdyno.core.measure.measurement_document import MeasurementReport

COLUMNS = ("measurement", "label", "run", "order", "sample", "steps", "step_s", "steady")


def check_ending(path: Path) -> None:
    """Refuse a file name that says no format; raises ``UsageError``."""
    if path.suffix.lower() not in _WRITERS:
        known = ", ".join(_WRITERS)
        raise UsageError(f"--export {path} names no format", remedy=f"end it with one of {known}")


def exported(
    path: Path, told: Sequence[MeasurementReport], comparison: Comparison | None = None
) -> bytes:
    """Return the content of a file in the format that its name ends in.

    Args:
        path: Ends in ``.json``, ``.csv`` or ``.md``.
        told: One measurement, or the two sides of an A/B.
        comparison: Of the two sides.

    Raises:
        UsageError: The ending says no format.
    """
    check_ending(path)
    return _WRITERS[path.suffix.lower()](told, comparison).encode()


def json_text(told: Sequence[MeasurementReport], comparison: Comparison | None = None) -> str:
    """Return the document that ``--json`` prints and ``compare`` reads."""
    return to_json(document_of(told, comparison), indent=2).decode() + "\n"


def csv_text(told: Sequence[MeasurementReport], _comparison: Comparison | None = None) -> str:
    """Return one row per sample of every run, warm-up included; ``steady`` is 1 where it counts.

    ``step_s`` is the mean time of a step, in seconds, over the sample's ``steps``.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in (each.measurement for each in told):
        for number, run in enumerate(one.runs, start=1):
            for at, (step_s, steps) in enumerate(zip(run.samples_s, run.steps_per_sample,
                                                     strict=True)):  # fmt: skip
                steady = int(at >= run.steady_from and at not in run.excluded)
                row = (one.id, one.label, number, run.order, at, steps, repr(step_s), steady)
                writer.writerow(row)
    return text.getvalue()


def markdown_text(told: Sequence[MeasurementReport], comparison: Comparison | None = None) -> str:
    """Write the answer, a table of runs and where it was measured, for an issue or a page."""
    parts, names = [], [""]
    if len(told) > 1:
        names = list(side_names(told[0].measurement.task, told[1].measurement.task))
    if comparison:
        parts = [f"**{verdict_words(names[0], names[1], comparison)}** {comparison.reason}"]
    for name, one in zip(names, told, strict=True):
        parts += _side(name, one)
    return "\n\n".join(parts) + "\n"


def _side(name: str, told: MeasurementReport) -> list[str]:
    one, found = told.measurement, told.summary
    head = f"{name}: {headline(one, found)}" if name else headline(one, found)
    rows = [
        f"| {number} | {seconds_words(median_s)} | {len(run.steady_s)} "
        f"| {seconds_words(run.first_step_s)} | {format_bytes(run.peak_memory_bytes)} "
        f"| {metric_words(run)} |"
        for number, (run, median_s) in enumerate(zip(one.runs, told.medians_s, strict=True), 1)
    ]
    headings = (say("run||number"), say("step"), say("samples||of time"), say("first step"),
                say("memory||of a run"), say("metrics"))  # fmt: skip
    table = [f"| {' | '.join(headings)} |", "|---:|---:|---:|---:|---:|---|", *rows]
    doubts = [f"> {doubt.text}" for doubt in found.instabilities]
    listed = [f"- {key}: {value}" for key, value in facts(one, found) if value]
    return [f"**{head}**", *(["\n".join(doubts)] if doubts else []), "\n".join(table),
            "\n".join(listed)]  # fmt: skip


_WRITERS: dict[str, Callable[[Sequence[MeasurementReport], Comparison | None], str]] = {
    ".json": json_text,
    ".csv": csv_text,
    ".md": markdown_text,
}
