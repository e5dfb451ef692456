"""Results as a few lines of HTML that a notebook shows below its cell."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.view.choose.estimate_text import headline
from tfdyno.view.choose.ranking_text import distinct
from tfdyno.view.diagnose.findings import row
from tfdyno.view.diagnose.words import step_line
from tfdyno.words.base.amounts import batch_cell, gib, short_hours, table_ms, table_usd
from tfdyno.words.choose.advice import brief, card, range_line, terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.choose.advice import Advice
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.workload import Trace
    from tfdyno.view.diagnose.document import DiagnoseReport

ROWS = 10


def estimates_html(estimates: Sequence[Estimate], trace: Trace, names: Mapping[str, str]) -> str:
    """Return the answer for the first card as a heading, then a table of all."""
    heads = ("GPU", "replicas", "step ms", "9 in 10", "samples/s", "GiB", "of", "max batch", "fits")
    rows = [
        (
            brief(names[one.gpu]),
            f"{one.replicas:,}",
            table_ms(one.step_s.best),
            f"{table_ms(one.step_s.low)}–{table_ms(one.step_s.high)}",
            significant(one.samples_per_s.best, 2),
            gib(one.device_memory_bytes.best),
            gib(one.usable_memory_bytes),
            batch_cell(one.max_batch_size),
            one.fits,
        )
        for one in estimates
    ]
    answer = escape(headline(estimates[0], trace, names))
    return f"<p><strong>{answer}</strong></p>{_table(heads, rows)}"


def advice_html(advice: Advice) -> str:
    """Write the answer as a heading, the picks with their reasons, and the ranking's first rows."""
    best = advice.pick("balanced")
    told = f"<p>{escape(range_line(best.candidate))}</p>" if best else ""
    picks = "".join(
        f"<li><strong>{pick.title}</strong>: {escape(card(pick.candidate))} "
        f"{escape(terms(pick.candidate))}: {escape(pick.reason)}</li>"
        for pick in advice.picks
    )
    heads = ("GPU", "offer", "US$", "hours", "step ms", "reason")
    rows = [
        (
            card(one),
            one.offer.slug if one.offer else "",
            table_usd(one.cost_usd.best) if one.cost_usd else "",
            short_hours(one.hours.best),
            table_ms(one.estimate.step_s.best),
            one.reason,
        )
        for one in distinct(advice.ranking)[:ROWS]
    ]
    return (
        f"<p><strong>{escape(advice.headline)}</strong></p>{told}<ul>{picks}</ul>"
        f"{_table(heads, rows)}"
    )


def diagnosis_html(told: DiagnoseReport) -> str:
    """Return the answer as a heading, the step, what to change, and a table of all findings."""
    primary, step_s = told.proven.diagnosis.primary, told.proven.diagnosis.step_s
    step = escape(step_line(step_s, told.facts, told.samples_per_s))
    steps = [" ".join(filter(None, (one.text, one.command))) for one in primary.fix]
    fix = "".join(f"<li>{escape(one)}</li>" for one in steps)
    heads = ("finding", "line", "expected", "proven", "outcome")
    rows = [row(one, told) for one in told.proven.diagnosis.findings]
    cells = [
        (one["summary"], one["place"], one["expected"],
         f"{one['proven']} ({one['range']})" if one["proven"] != "–" else one["range"],
         one["outcome"]) for one in rows
    ]  # fmt: skip
    return (
        f"<p><strong>{escape(primary.summary)}</strong></p><p>{step}</p><ul>{fix}</ul>"
        f"{_table(heads, cells)}"
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
