"""A measured input pipeline as terminal text: the answer, its stages, limits, cards to feed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_si, significant
from tfdyno.view.base.text import WIDTH, paint, pairs, shorten, table, wrapped
from tfdyno.words.base.amounts import percent
from tfdyno.words.bench.measurement import seconds_words
from tfdyno.words.data.feed import (
    about,
    headline,
    limits,
    need_cells,
    need_sentence,
    warnings_of,
)

if TYPE_CHECKING:
    from tfdyno.core.measure.feed import StageRate
    from tfdyno.core.measure.feed_document import FeedReport

_STAGES = ("stage", "at", "gives/s", "out", "per sample", "share", "threads", "could/s")
_LONGEST = 28
_FEW = 3
"""So many cards have a sentence each."""
_NEEDS = ("GPU", "step", "needs/s", "9 in 10", "CPUs", "9 in 10", "fed here")


def data_bench_text(
    told: FeedReport, *, written: str = "", width: int = WIDTH, colour: bool = False
) -> str:
    """Return the whole answer.

    Args:
        told: What was measured.
        written: The file with it; empty: none.
        width: Columns of the screen.
        colour: Whether to print bold and dim.
    """
    blocks = [
        _answer(told, width, colour),
        _stages(told, width, colour),
        _section("Limits", pairs(limits(told), width=width), colour),
        _needs(told, width, colour),
        "\n".join(wrapped(f"Note: {text}", width=width) for text in warnings_of(told)),
        _closing(told, written),
    ]
    return "\n\n".join(block for block in blocks if block)


def _answer(told: FeedReport, width: int, colour: bool) -> str:
    lines = wrapped(headline(told), width=width).split("\n")
    bold = [paint(line, "bold", colour=colour) for line in lines]
    return "\n".join([*bold, wrapped(about(told), width=width)])


def _stages(told: FeedReport, width: int, colour: bool) -> str:
    rows = [_cells(one) for one in told.stages]
    if not rows:
        return ""
    return table(_STAGES, rows, align="<<>>>>>>", width=width, spare=(6, 1, 3), colour=colour)


def _cells(one: StageRate) -> list[str]:
    facts = one.facts
    threads = "auto" if facts.parallel_calls < 0 else str(facts.parallel_calls)
    return [
        shorten(facts.title, _LONGEST),
        facts.place,
        significant(one.elements_per_s) if one.elements_per_s else "–",
        format_si(one.output_bytes_per_s, "B/s", 2) if one.output_bytes_per_s else "–",
        seconds_words(one.sample_s.best) if one.sample_s.best else "–",
        percent(one.share_ratio) if one.share_ratio else "–",
        threads,
        format_si(one.most_per_s, "", 2).rstrip() if one.most_per_s else "–",
    ]


def _needs(told: FeedReport, width: int, colour: bool) -> str:
    if not told.needs:
        return ""
    rows = [need_cells(one) for one in told.needs]
    body = table(_NEEDS, rows, align="<>>>>>>", width=width, elastic=0, spare=(3,), colour=colour)
    few = len(told.needs) <= _FEW
    shown = [one for one in told.needs if few or one.cpus[1] is None]
    said = [wrapped(need_sentence(one, told), width=width) for one in shown]
    size = told.needs[0].batch_size
    title = f"To feed a GPU at batch {size:,}, by the quick estimate of its step"
    return "\n".join([paint(title, "bold", colour=colour), body, *said])


def _section(title: str, body: str, colour: bool) -> str:
    return f"{paint(title, 'bold', colour=colour)}\n{body}" if body else ""


def _closing(told: FeedReport, written: str) -> str:
    if not written:
        return ""
    has_model = told.needs or told.feed.reference.endswith(".py")
    workload = told.feed.reference if has_model else "WORKLOAD"
    command = shlex.join(["tfdyno", "advise", workload, "--feed", written])
    return f"Wrote {written}.\nNext: {command}"
