"""The ranking as rows in groups: texts, keys to sort by, and which rows show before unfolding."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfdyno.core.base.settings import MOST_SAMPLES
from tfdyno.view.base.template import sentence
from tfdyno.view.choose.cards import by_verdict, card_name, machine, pick_titles, rent_words, stale
from tfdyno.view.choose.figures import term_shares
from tfdyno.words.base import amounts
from tfdyno.words.base.language import say
from tfdyno.words.base.names import named
from tfdyno.words.choose import kernels
from tfdyno.words.choose.advice import fed_words, fit_state, tie_mark
from tfdyno.words.memory.basis import recomputed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.choose.advice import Advice, Candidate, Run
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.hardware import Gpu

SHOWN = {"feasible": 14, "too late": 4, "too dear": 4}
"""Rows of a group that show before it is unfolded; the others show ``_SHOWN_ELSE``."""
_SHOWN_ELSE = 3
FEW = 3
"""So few folded rows are not worth a fold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A number with its range below, and the key that sorts it."""

    text: str
    small: str = ""
    key: float = math.inf
    warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    """One candidate as the table shows it."""

    number: int
    name: str
    machine: str
    rent_words: str
    full_name: str
    """The name with the maker's brand, for the filter."""
    titles: tuple[str, ...]
    warnings: tuple[str, ...]
    cost: Cell
    hours: Cell
    step: Cell
    memory: Cell
    memory_share: float
    held: str
    held_small: str
    refusal: str
    """Why there are no numbers; empty where there are."""
    interval: tuple[float, float, float] | None
    """Low, best and high of the hours as per cent of the common logarithmic axis."""
    market: str
    provider: str
    rent: str
    shown: bool
    leads: bool
    """Whether it is the first row of its card and number of cards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGroup:
    """Rows with one verdict."""

    verdict: str
    title: str
    rows: tuple[RankRow, ...]
    shown: int
    """How many rows show before the group is unfolded."""

    @property
    def folded(self) -> int:
        """Number of rows behind the fold."""
        return sum(not row.shown for row in self.rows)


def hours_axis(advice: Advice) -> tuple[float, float]:
    """Return the ends of the logarithmic axis of hours, at 1, 2 or 5 × a power of ten."""
    timed: tuple[str, ...] = ("feasible", "too late", "too dear")
    if any(card.verdict == "feasible" for card in advice.ranking):
        timed = ("feasible",)
    known = [card.hours for card in advice.ranking if card.verdict in timed]
    known = [hours for hours in known if hours.low > 0]
    if not known:
        return 1.0, 10.0
    low, high = min(h.low for h in known), max(h.high for h in known)
    return _round_down(low), 1 / _round_down(1 / high)


def _round_down(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return max(m * power for m in (1, 2, 5) if m * power <= value * (1 + 1e-9))


def groups(advice: Advice, gpus: Mapping[str, Gpu]) -> tuple[RankGroup, ...]:
    """Return all candidates in groups by verdict, numbered through."""
    titles = pick_titles(advice)
    order = {id(candidate): index for index, candidate in enumerate(advice.ranking)}
    axis, number, made = hours_axis(advice), 0, []
    for verdict, members in by_verdict(advice).items():
        limit = SHOWN.get(verdict, _SHOWN_ELSE)
        seen: set[tuple[str, int]] = set()
        rows = []
        for candidate in members:
            number += 1
            key = (candidate.gpu, candidate.count)
            leads, named = key not in seen, tuple(titles.get(order[id(candidate)], ()))
            seen.add(key)
            shown = bool(named) or (leads and len(seen) <= limit)
            gpu = gpus.get(candidate.gpu)
            rows.append(_row(candidate, advice, gpu, axis, number, named, shown=shown, leads=leads))
        if sum(not row.shown for row in rows) <= FEW:
            rows = [replace(row, shown=True) for row in rows]
        title = group_title(verdict, advice.run, rows, members)
        made.append(RankGroup(verdict=verdict, title=title, rows=tuple(rows), shown=limit))
    return tuple(made)


def group_title(
    verdict: str, run: Run, rows: Sequence[RankRow], members: Sequence[Candidate]
) -> str:
    """Return the heading of a group, with what would help where something would."""
    deadline, budget = amounts.plain(run.deadline_h), f"${run.budget_usd:,.0f}"
    limits = [say("within {deadline} hours", deadline=deadline)] if run.deadline_h else []
    limits += [say("for at most {budget}", budget=budget)] if run.budget_usd else []
    if verdict == "does not fit":
        largest = max(member.estimate.max_batch_size or 0 for member in members)
        help_ = (
            say("; the largest batch among them is {largest:,}", largest=largest) if largest else ""
        )
        batch = members[0].estimate.batch_size
        return say("Too little memory for a batch of {batch:,}{help}", batch=batch, help=help_)
    return {
        "feasible": say("Finish {limits}, by the best estimate", limits=say(" and ").join(limits))
        if limits
        else say("Can do the run"),
        "too late": say("Later than {deadline} hours", deadline=deadline),
        "too dear": say("Dearer than {budget}", budget=budget),
        "cannot run": say("Cannot run with this TensorFlow"),
        "no offer": say("No offer known: hours only"),
    }[verdict]


def _row(
    candidate: Candidate,
    advice: Advice,
    gpu: Gpu | None,
    axis: tuple[float, float],
    number: int,
    titles: tuple[str, ...],
    *,
    shown: bool,
    leads: bool,
) -> RankRow:
    estimate = candidate.estimate
    share = estimate.device_memory_bytes.best / max(estimate.usable_memory_bytes, 1.0)
    held, held_small = _held(candidate)
    return RankRow(
        number=number,
        name=card_name(candidate),
        machine=machine(candidate),
        rent_words=rent_words(candidate),
        full_name=candidate.gpu_name,
        titles=tuple(map(named, titles)),
        warnings=tuple(text for text in (stale(candidate, advice.made_on),) if text),
        cost=_cost_cell(candidate),
        hours=_hours_cell(candidate, advice.run),
        step=Cell(
            text=amounts.table_ms(estimate.step_s.best),
            small=amounts.table_ms_range(estimate.step_s),
            key=estimate.step_s.best,
        ),
        memory=Cell(
            text=amounts.percent(share),
            small=_most(estimate),
            key=share,
            warning=_memory_warning(estimate),
        ),
        memory_share=min(share, 1.0),
        held=held,
        held_small=held_small,
        refusal=_refusal(candidate),
        interval=_interval(candidate, axis),
        market=gpu.market if gpu else "",
        provider=candidate.offer.provider if candidate.offer else "",
        rent=candidate.offer.way if candidate.offer else "",
        shown=shown,
        leads=leads,
    )


def _cost_cell(candidate: Candidate) -> Cell:
    cost = candidate.cost_usd
    if cost is None:
        return Cell(text="–")
    return Cell(
        text=f"{tie_mark(candidate)}${amounts.table_usd(cost.best)}",
        small=amounts.usd_range(cost),
        key=cost.best,
    )


def _hours_cell(candidate: Candidate, run: Run) -> Cell:
    hours = candidate.hours
    may_miss = candidate.verdict == "feasible" and 0 < run.deadline_h < hours.high
    return Cell(
        text=amounts.table_hours(hours.best),
        small=amounts.table_hours_range(hours),
        key=hours.best,
        warning=say("may miss {hours} h", hours=amounts.plain(run.deadline_h)) if may_miss else "",
    )


def _held(candidate: Candidate) -> tuple[str, str]:
    estimate = candidate.estimate
    share = term_shares(estimate).get(estimate.bound_by)
    small = say("{share} of the step", share=amounts.percent(share)) if share else ""
    if candidate.feeding and candidate.feeding.is_short:
        small = f"{small}; {fed_words(candidate)}".removeprefix("; ")
    return kernels.cause(estimate.bound_by), small


def _refusal(candidate: Candidate) -> str:
    """Return why the candidate cannot do the run at all, and the way out where there is one."""
    estimate = candidate.estimate
    if candidate.verdict == "cannot run":
        why = (candidate.tensorflow or candidate.reason).removeprefix("cannot: ")
        return sentence(named(why))
    if candidate.verdict != "does not fit":
        return ""
    needed, usable = estimate.device_memory_bytes.best, estimate.usable_memory_bytes
    is_open = fit_state(estimate) in ("may not", "probably not")
    out = (
        say("; a batch of {batch:,} would fit", batch=estimate.max_batch_size)
        if estimate.max_batch_size
        else ""
    )
    return sentence(
        say(
            "may need {needed} GiB and has {usable}{out}"
            if is_open
            else "needs {needed} GiB and has {usable}{out}",
            needed=amounts.gib(needed),
            usable=amounts.gib(usable),
            out=out,
        )
    )


def _memory_warning(estimate: Estimate) -> str:
    if estimate.fits == "may not":
        return say("may not fit")
    return recomputed(estimate.rematerialisation)


def _most(estimate: Estimate) -> str:
    most = estimate.max_batch_size
    if most is None or most == MOST_SAMPLES:
        return say("largest batch {batch}", batch=amounts.batch_words(most))
    return say("batch ≤ {batch:,}", batch=most)


def _interval(candidate: Candidate, axis: tuple[float, float]) -> tuple[float, float, float] | None:
    low, high = axis
    hours = candidate.hours
    if hours.low <= 0 or candidate.verdict == "no offer":
        return None
    span = math.log(high / low)

    def place(value: float) -> float:
        return round(100 * min(max(math.log(value / low) / span, 0.0), 1.0), 1)

    return place(hours.low), place(hours.best), place(hours.high)
