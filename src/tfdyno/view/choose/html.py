"""The report page: an Advice and what it was made from, as one self-contained HTML file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins, to_json
from tfdyno.core.base.units import significant
from tfdyno.core.choose.hardware import UNKNOWN_PRICE_RANGE
from tfdyno.view.base.documents import scaling_document
from tfdyno.view.base.template import page
from tfdyno.view.choose import basis, cards, ranking, sections, sentences
from tfdyno.view.choose.cards import card_name
from tfdyno.words.base import amounts
from tfdyno.words.base.language import say
from tfdyno.words.base.names import named
from tfdyno.words.choose import kernels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.base.untyped import Value
    from tfdyno.core.choose.advice import Advice, Candidate, Title
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.program import Program
    from tfdyno.core.choose.workload import Trace


_UNTOLD = {"price_range": UNKNOWN_PRICE_RANGE, "to_first": None, "launch_price_usd": 0.0}
"""What the page's JSON leaves out of hundreds of rows where nothing is known of it."""


def render_report(
    *, advice: Advice, trace: Trace, program: Program, gpus: Mapping[str, Gpu]
) -> str:
    """Make the page; it loads nothing from anywhere and reads without JavaScript.

    Args:
        advice: The answer, with the estimates of all candidates.
        trace: What was traced; names the workload.
        program: The program that the recommended estimate stands on.
        gpus: The catalogue's cards by slug; a card that is missing shows by its slug.
    """
    best = cards.recommended(advice)
    return page(
        "report",
        _document(advice),
        reference=trace.workload.reference,
        date=advice.made_on,
        advice=advice,
        trace=trace,
        best=best,
        picks=_picks(advice),
        answer=sentences.answer(advice),
        changes=(*advice.changes, *advice.buy_or_rent),
        sections=sections.evidence(advice, best, gpus, program),
        ranking=sentences.ranking(advice),
        few=ranking.FEW,
        groups=ranking.groups(advice, gpus),
        axis=say(" to ").join(significant(end, 1) for end in ranking.hours_axis(advice)) + " h",
        markets=cards.markets(advice, gpus),
        providers=cards.providers(advice),
        facts=basis.facts(advice, trace, program, best),
        sources=basis.sources(advice, best, gpus),
        commands=basis.commands(advice, trace, best),
        setup=_setup(advice, trace, best),
    )


def _setup(advice: Advice, trace: Trace, best: Candidate | None) -> tuple[str, ...]:
    """Return the line at the top: model, recipe and limits."""
    run, found = advice.run, [trace.title]
    if best is not None:
        estimate = best.estimate
        found += [
            say("batch {batch:,}", batch=estimate.batch_size),
            estimate.precision,
            kernels.execution(estimate.execution),
        ]
    found.append(
        say("{count:,} epochs", count=run.epochs)
        if run.epochs
        else say("{count:,} steps", count=run.steps)
    )
    if run.deadline_h:
        found.append(say("within {hours} h", hours=amounts.plain(run.deadline_h)))
    if run.budget_usd:
        found.append(say("at most ${budget:,.0f}", budget=run.budget_usd))
    return tuple(found)


def _picks(advice: Advice) -> list[dict[str, Any]]:
    """Return the three picks as boxes; the recommended one is marked."""
    best, made = cards.recommended(advice), list[dict[str, Any]]()
    titles: tuple[Title, ...] = ("cheapest", "balanced", "fastest")
    for pick in filter(None, map(advice.pick, titles)):
        is_ours = pick.title == "balanced"
        card, ours = pick.candidate, best is not None and cards.same(pick.candidate, best)
        first = ours and not any(other["best"] for other in made)
        cost = card.cost_usd
        made.append(
            {
                "title": amounts.capital(named(pick.title))
                + (say(": our pick") if is_ours else ""),
                "best": is_ours or (first and len(advice.picks) == 1),
                "name": card_name(card),
                "machine": cards.machine(card),
                "rent": cards.rent_words(card),
                "cost": f"${amounts.table_usd(cost.best)}" if cost else "–",
                "cost_range": amounts.usd_range(cost) if cost else say("no price known"),
                "hours": amounts.short_hours(card.hours.best),
                "hours_range": amounts.hours_range(card.hours),
                "reason": pick.reason,
                "stale": cards.stale(card, advice.made_on),
            }
        )
    return made


def _document(advice: Advice) -> dict[str, Any]:
    """Return the whole answer, as it stands in the page.

    An estimate that serves many offers stands once in ``estimates``, and candidates name it by
    its place there; layers and roofline are kept for the picks. Floats have six digits. The
    explanations stand on the page as tables; ``estimate --explain --json`` has their numbers.
    """
    best = cards.recommended(advice)
    detailed = [pick.candidate for pick in advice.picks] + ([best] if best else [])
    picked = {(candidate.gpu, candidate.count) for candidate in detailed}
    places: dict[bytes, int] = {}
    estimates: list[dict[str, Any]] = []

    def place(candidate: Candidate) -> dict[str, Any]:
        raw: dict[str, Any] = to_builtins(candidate)
        raw["estimate"].pop("explanation")
        for name, usual in _UNTOLD.items():
            if getattr(candidate, name) == usual:
                del raw[name]
        if (candidate.gpu, candidate.count) not in picked:
            raw["estimate"] |= {"layers": [], "roofline": []}
        key = to_json(raw["estimate"])
        if key not in places:
            places[key] = len(estimates)
            estimates.append(raw["estimate"])
        return raw | {"estimate": places[key]}

    whole: dict[str, Any] = to_builtins(replace(advice, ranking=(), picks=(), scaling=()))
    whole["ranking"] = [place(candidate) for candidate in advice.ranking]
    whole["picks"] = [
        {"title": p.title, "reason": p.reason, "candidate": place(p.candidate)}
        for p in advice.picks
    ]
    whole["estimates"] = estimates
    whole["scaling"] = [scaling_document(series) for series in advice.scaling]
    rounded: dict[str, Any] = _rounded(whole)
    return rounded


def _rounded(value: Value) -> Value:
    """Return the same with six significant digits in every float: estimates know no more."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list | tuple) else value
