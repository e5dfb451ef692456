"""How fast each stage of the input pipeline is, beside the step that it feeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.diagnose.course import bytes_rate_words, rate_words, told_stages
from tfdyno.view.draw.bars import Row, Segment, absolute, bar_figure
from tfdyno.view.draw.svg import Figure, Key, Table
from tfdyno.words.base.amounts import listed, percent, step_unit
from tfdyno.words.base.language import say, say_later
from tfdyno.words.bench.measurement import seconds_words

if TYPE_CHECKING:
    from tfdyno.core.measure.bottleneck import StepDiagnosis

_ALL = say_later("all of them")
_MOST_TITLE = 36


def stages_figure(one: StepDiagnosis, samples: int) -> Figure | None:
    """Draw seconds of a batch by stage, in the pipeline's order; None where they are not known.

    Args:
        one: With the pipeline and the step by themselves.
        samples: Of a batch, over all replicas.
    """
    stages = told_stages(one.stages)
    if not stages or not one.batch_s:
        return None
    factor_s, unit = step_unit(one.batch_s)
    rows = [_row(_short(each.title), each.batch_s, each.samples_per_s, factor_s) for each in stages]
    rows.append(_row(say(_ALL), one.batch_s, samples / one.batch_s, factor_s, is_all=True))
    chart = absolute(
        tuple(rows),
        say("{unit} of one batch", unit=unit),
        limit=one.held_s / factor_s,
        limit_text=say("the step alone: {held}", held=seconds_words(one.held_s)),
    )
    parts = [f"{row.name} {row.number}" for row in rows]
    step = (
        say("; the step by itself takes {held}", held=seconds_words(one.held_s))
        if one.held_s
        else ""
    )
    return bar_figure(
        chart,
        label=say(
            "Bars of what each stage of the input pipeline takes of a batch and of the "
            "samples that it could give: {parts}{step}.",
            parts=listed(parts),
            step=step,
        ),
        key=(
            Key(text=say("one stage"), variable="c2"),
            Key(text=say("the whole pipeline"), variable="c1"),
        )
        if len(stages) > 1
        else (),
        table=_table(one, samples),
        caption=say("Time of a batch by stage of the pipeline, and the rate that it allows"),
    )


def _short(title: str) -> str:
    return title if len(title) <= _MOST_TITLE else f"{title[: _MOST_TITLE - 1]}…"


def _row(name: str, seconds_s: float, rate: float, factor_s: float, *, is_all: bool = False) -> Row:
    words = f"{seconds_words(seconds_s)} · {rate_words(rate)}"
    segment = Segment(variable="c1" if is_all else "c2", value=seconds_s / factor_s,
                      tip=f"{name}: {words}")  # fmt: skip
    return Row(name=name, number=words, segments=(segment,), strong=is_all)


def _table(one: StepDiagnosis, samples: int) -> Table:
    rows = [
        (each.title, each.place, seconds_words(each.batch_s), percent(each.batch_s / one.batch_s),
         rate_words(each.samples_per_s) if each.samples_per_s else "–",
         bytes_rate_words(each.bytes_per_s) or "–")
        for each in one.stages
    ]  # fmt: skip
    rows.append((say(_ALL), "", seconds_words(one.batch_s), "100%",
                 rate_words(samples / one.batch_s), ""))  # fmt: skip
    if one.held_s:
        rows.append(
            (
                say("the step alone"),
                "",
                seconds_words(one.held_s),
                "",
                rate_words(samples / one.held_s),
                "",
            )
        )
    headings = (say("Stage"), say("Line"), say("Of a batch"), say("Share"), say("It could give"),
                say("Data"))  # fmt: skip
    return Table(headings=headings, rows=tuple(rows), text_columns=frozenset((0, 1)))
