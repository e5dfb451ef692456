"""The page of a service's size, as one self-contained HTML file."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tfdyno.view.base.template import page
from tfdyno.view.choose.figure_serving import cost_figure, rate_figure
from tfdyno.view.choose.serving_size_document import size_document
from tfdyno.view.draw.svg import Table
from tfdyno.words.base.amounts import percent
from tfdyno.words.base.language import say
from tfdyno.words.base.names import named
from tfdyno.words.choose.serving_size import (
    goal_words,
    machine_words,
    ms,
    scaling_words,
    seller_words,
    usd,
)

if TYPE_CHECKING:
    from tfdyno.core.choose.serving_size import ServingCandidate, ServingSize

_ANSWERS = ("feasible", "too dear")
"""Verdicts of machines that keep the promise."""


def size_page(size: ServingSize) -> str:
    """Make the page; it loads nothing from anywhere and reads without JavaScript."""
    best = size.pick("balanced")
    return page(
        "serving_size",
        size_document(size),
        reference=size.reference,
        setup=(size.title, size.precision, goal_words(size.goal)),
        date=size.made_on,
        headline=size.headline,
        answer=best.candidate.replica.reason
        if best
        else say("Asked: {goal}.", goal=goal_words(size.goal)),
        scaling=scaling_words(size),
        picks=[
            {
                "title": named(one.title).capitalize()
                + (say(": our pick") if one.title == "balanced" else ""),
                "best": one.title == "balanced",
                "name": machine_words(one.candidate),
                "machine": seller_words(one.candidate),
                "numbers": _numbers(one.candidate),
                "reason": one.reason,
            }
            for one in size.picks
        ],
        cost=cost_figure(size),
        rate=rate_figure(size),
        latency=_latency(size),
        ranking=_ranking(size),
        out=[(one.replica.gpu_name, one.reason) for one in _left_out(size)],
        facts=[(named(name).capitalize(), text) for name, text in size.assumptions.items()],
        notes=size.notes,
        sources=size.sources,
        catalogue_date=size.catalogue_date,
        commands=_commands(size),
    )


def _numbers(one: ServingCandidate) -> list[tuple[str, str, str]]:
    peak = one.at_peak
    return [
        (
            say("Per million"),
            usd(one.usd_per_million or 0.0),
            say("{usd} a month", usd=usd(one.usd_per_month or 0.0)),
        ),
        ("p99", ms(peak.p99_s) if peak else "–", f"p50 {ms(peak.p50_s)}" if peak else ""),
    ]


def _latency(size: ServingSize) -> Table | None:
    """Return seconds of a batch on the picked card."""
    best = size.pick("balanced")
    if best is None:
        return None
    rows = tuple(
        (f"{rows:,}", ms(time.best), say("{low} to {high}", low=ms(time.low), high=ms(time.high)),
         f"{rows / time.best:,.0f}")
        for rows, time in best.candidate.replica.latency_s.items()
    )  # fmt: skip
    return Table(
        headings=(say("Rows"), say("Model alone"), say("9 in 10"), say("Rows per second")),
        rows=rows,
    )


def _ranking(size: ServingSize) -> Table:
    shown = [one for one in size.ranking if one.at_peak and one.verdict in _ANSWERS]
    dear = any(one.verdict == "too dear" for one in shown)
    rows = [
        (
            machine_words(one),
            seller_words(one),
            f"{one.replica.max_batch_size}",
            ms(one.at_peak.p50_s),
            ms(one.at_peak.p99_s),
            percent(min(1.0, one.at_peak.utilisation_ratio)),
            usd(one.usd_per_million or 0.0),
            usd(one.usd_per_month or 0.0),
            *(("" if one.verdict == "feasible" else named(one.verdict),) if dear else ()),
        )
        for one in shown
        if one.at_peak
    ]
    headings = (
        say("Machines"),
        say("Offer"),
        say("Batch"),
        "p50",
        "p99",
        say("Used"),
        "$/million",
        "$/month",
    )
    return Table(
        headings=(*headings, "") if dear else headings,
        rows=tuple(rows),
        text_columns=frozenset((0, 1, 8)),
    )


def _left_out(size: ServingSize) -> list[ServingCandidate]:
    found = {one.replica.gpu: one for one in size.ranking if one.verdict not in _ANSWERS}
    return list(found.values())


def _commands(size: ServingSize) -> list[tuple[str, str]]:
    goal = size.goal
    asked = (
        f"tfdyno advise {shlex.quote(size.reference)} --scenario serve "
        f"--requests-per-day {goal.requests_per_day:.15g} --p99-ms {goal.p99_s * 1e3:g}"
        f" --peak-factor {goal.peak_factor:g} --rows-per-request {goal.rows_per_request}"
    )
    return [
        (
            f"{asked} --output size.json",
            say("What an autoscaler needs, as a file"),
        ),
        (f"{asked} --spare 1", say("One machine more than the peak needs")),
    ]
