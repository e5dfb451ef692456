"""The page ``docs/accuracy.md`` and its summary: TensorFlow first, worst first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.catalog.time_model import time_model
from tfdyno_truth import cells, memory_report, report_parts, routes, scaling_report, score_text
from tfdyno_truth.accuracy import SHIPPED
from tfdyno_truth.both import Prices
from tfdyno_truth.sections import Section, Table, markdown
from tfdyno_truth.sheet import ALL, FRAMEWORKS
from tfdyno_truth.ways import ONE_NEW, PARTS, SEEN, WAYS, WIDTHS_FROM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno_truth.accuracy import Accuracy

FIGURES = "accuracy-plots.html"
HEAD = """# Accuracy

Written by `tfdyno-truth fit`; do not edit. The same with figures: [{figures}]({figures}).

{kept}{answer}

{method}
"""
METHOD = """\
Predicted step time against {rows:,} published measurements ({groups} groups of model, card,
precision and mode, whatever the framework and execution) from `truth/published/measurements.csv`.
Error is |predicted − measured| / measured, averaged inside a group first, then over groups. *Bias*
is the median of predicted over measured. *± half* is half of the 90 % interval's width over the
estimate, as `tfdyno estimate` would give it, with widths learned without the rows that they are
judged on and what is like them. Rows that contradict others, listed by rule in
`truth/suspicious.csv`, are judged but not learned from. Steps bound by launches (CNN batch below
16), fused attention and channels-last PyTorch have lines of their own and are not part of the
whole. Predictions are those of the quick route.

*{outer}* is the hardest way and the one to go by:
a row is predicted by a fit that has seen no row of its source, of its kind of model and of its chip
(the latter two in {parts} parts each), and whose priors are neutral. The priors of the shipped
constants are round figures near earlier fits on these rows, and the terms were chosen on them too,
so that with one thing left out errors are smaller than on rows that nobody has seen. The widths of
the intervals are learned from this way."""
OVERALL = """\
*Learnable rows* are the same predictions without the rows that `truth/suspicious.csv` keeps from
the fit: one of two logs of the same setting that are over 1.4 times apart, of which no prediction
can meet both, and runs of something else than a sound step (input-bound, throttled, out of
workspace, no update, software of 2017). *Pairs in order* are two cards that ran one workload with
the same batch, more than 15 % apart; *own batches* compares time per sample of each card's largest
measured batch."""


def summary(found: Accuracy) -> str:
    """What the terminal shows: the answer, the wholes and the strata of each way."""
    fitted = found.fitted
    parts = [f"{len(fitted.design.rows):,} rows, {fitted.seconds_s:.0f} s"]
    for name, title in _titles(found):
        sheet = found.sheets[name]
        parts.append(score_text.answer(sheet, title.capitalize()))
        parts.append(score_text.table(sheet.whole))
        parts.append("\n".join(score_text.order_words(line) for line in sheet.whole))
        if name in (WIDTHS_FROM, *ONE_NEW):
            parts += [f"{framework}\n{score_text.table(lines)}"
                      for framework, lines in sheet.strata.items()]  # fmt: skip
    return "\n\n".join([*parts, scaling_report.answer(found.scaling)])


def page(found: Accuracy, before: str = "") -> str:
    """The whole page in Markdown.

    Args:
        found: What is told.
        before: The page that it replaces, whose block about today's software stays.
    """
    head = HEAD.format(
        figures=FIGURES, kept=_kept(before), answer=answer(found), method=method(found)
    )
    return "\n".join([head, *(markdown(section) + "\n" for section in sections(found))])


def _kept(before: str) -> str:
    """The block about today's software, which another command writes; nothing without one."""
    block = re.search(r"<!-- today -->.*?<!-- /today -->", before, flags=re.S)
    return f"{block[0]}\n\n" if block else ""


def answer(found: Accuracy) -> str:
    """The error on what is new, TensorFlow's first."""
    gpu, model = found.sheets["gpu"].whole, found.sheets["model"].whole
    outer = found.sheets[WIDTHS_FROM].whole
    return (
        f"Where the source, the kind of model and the GPU are all new to the fit, the step time of "
        f"a {outer[0].label} workload is predicted with a mean error of "
        f"{cells.share(outer[0].score.mean)}, and the 90 % interval holds "
        f"{outer[0].score.coverage:.0%}. "
        f"On a GPU that the fit has not seen, the step time of a {gpu[0].label} workload is "
        f"predicted with a mean error of {cells.share(gpu[0].score.mean)}; of a kind of model that "
        f"the fit has not seen, with {cells.share(model[0].score.mean)}."
    )


def method(found: Accuracy) -> str:
    """What was judged and how."""
    rows = found.fitted.design.rows
    return METHOD.format(
        rows=len(rows),
        groups=len({row.group for row in rows}),
        outer=WAYS[WIDTHS_FROM].title.capitalize(),
        parts=PARTS,
    )


def sections(found: Accuracy) -> Iterator[Section]:
    """Everything below the answer, the most important first."""
    yield overall(found)
    yield from report_parts.against_others(found)
    yield report_parts.worst(found)
    yield from memory_report.sections(found.memory)
    for name in (WIDTHS_FROM, *ONE_NEW):
        for framework, lines in found.sheets[name].strata.items():
            title = f"{framework} by stratum, {WAYS[name].title}"
            yield Section(title=title, table=cells.scores("stratum", lines))
    chips, kinds = found.sheets["gpu"].chips, found.sheets["model"].architectures
    yield Section(title="By card, left out", table=cells.scores("card", chips))
    yield Section(title="By kind of model, left out", table=cells.scores("kind", kinds))
    yield report_parts.ablation(found)
    yield report_parts.own_measurement(found)
    yield from routes.sections(Prices(constants=found.fitted.constants, widths=found.fitted.widths))
    yield from scaling_report.sections(found.scaling)
    yield Section(title="Constants", table=_constants(found))


def overall(found: Accuracy) -> Section:
    """All ways of leaving out, TensorFlow first."""
    told = [(title, found.sheets[name].whole) for name, title in _titles(found)]
    told += [(f"{WAYS[name].title}, learnable rows", lines)
             for name, lines in found.learnable.items()]  # fmt: skip
    rows = tuple(
        (line.label, title, *cells.scored(line.score), *cells.ordered(line.order))
        for label in (*FRAMEWORKS.values(), ALL)
        for title, lines in told
        for line in lines
        if line.label == label
    )
    headings = ("rows of", "how", *cells.SCORED, *cells.ORDERED)
    table = Table(headings=headings, rows=rows, words=2)
    return Section(title="Errors, intervals and order", prose=OVERALL, table=table)


def _titles(found: Accuracy) -> list[tuple[str, str]]:
    """Names of the sheets and what they are called, the hardest way first."""
    names = sorted(found.sheets, key=lambda name: name != WIDTHS_FROM)
    return [(name, SEEN if name == SHIPPED else WAYS[name].title) for name in names]


def _constants(found: Accuracy) -> Table:
    rows = []
    for name, parameter in time_model().parameters.items():
        if not parameter.fitted or name not in found.fitted.constants:
            continue
        value = found.fitted.constants[name]
        bound = min(abs(value / parameter.high - 1), abs(value / (parameter.low or 1e-9) - 1))
        remark = "at its bound: not identified" if bound < 0.01 else ""
        allowed = f"{parameter.low:g}–{parameter.high:g}"
        rows.append((name, parameter.unit, remark, allowed, f"{value:.3g}"))
    headings = ("constant", "unit", "remark", "allowed", "value")
    return Table(headings=headings, rows=tuple(rows), words=3)
