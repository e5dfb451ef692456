"""Rows whose open fit decides an answer: a compile of any other would tell nothing new."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.jobs.choose.picks import sober_picks
from tfdyno.model.choose.choose import in_order, verdict_of
from tfdyno.words.choose.advice import headline

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tfdyno.core.choose.advice import Candidate, Run


def deciding(
    ranking: Sequence[Candidate], run: Run, *, named: Collection[str] = ()
) -> tuple[Candidate, ...]:
    """Return the rows that a compile has to settle, picks first, then in the ranking's order.

    A row decides where its fit is open and the picks, or the headline where there are none, would
    be others if it turned out the other way. Where no single row does but all together would, each
    of them decides.

    Args:
        ranking: All candidates.
        run: Its limits.
        named: Cards whose fit was asked for by name: theirs is settled whatever the picks.
    """
    open_rows = [one for one in ranking if is_open(one)]
    if not open_rows:
        return ()
    now = _answer(ranking, run)

    def changes(rows: Sequence[Candidate]) -> bool:
        return bool(rows) and _answer(_turned(ranking, rows, run), run) != now

    found = [one for one in open_rows if one.gpu in named or changes([one])]
    if not found:
        out = [one for one in open_rows if one.verdict == "does not fit"]
        within = [one for one in open_rows if one.verdict != "does not fit"]
        found = open_rows if changes(out) or changes(within) else []
    picked = {one.slug for one in sober_picks(ranking).values()}
    return tuple(sorted(found, key=lambda one: one.slug not in picked))


def is_open(one: Candidate) -> bool:
    """Return whether a compile would settle a fit that the estimate does not, and XLA runs it."""
    estimate = one.estimate
    return (
        estimate.fits == "unverified"
        and estimate.execution == "xla"
        and one.verdict != "cannot run"
    )


def _answer(ranking: Sequence[Candidate], run: Run) -> tuple[str, dict[str, str]]:
    chosen = sober_picks(ranking)
    told = headline(ranking, chosen.get("balanced"), run)
    return told, {title: one.slug for title, one in chosen.items()}


def _turned(
    ranking: Sequence[Candidate], rows: Sequence[Candidate], run: Run
) -> tuple[Candidate, ...]:
    """Return the ranking if these turned out the other way."""
    others = {one.slug: _other_way(one, run) for one in rows}
    return in_order(others.get(one.slug, one) for one in ranking)


def _other_way(one: Candidate, run: Run) -> Candidate:
    estimate, fits = one.estimate, one.verdict == "does not fit"
    held, usable = estimate.device_memory_bytes, estimate.usable_memory_bytes
    if fits:
        held = replace(held, low=min(held.low, usable), best=usable, high=max(held.high, usable))
    other = replace(estimate, fits="yes" if fits else "no", device_memory_bytes=held)
    verdict = verdict_of(run, other, hours=one.hours, cost_usd=one.cost_usd, runs=True)
    return replace(one, estimate=other, verdict=verdict)
