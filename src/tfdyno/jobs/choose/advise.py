"""Advise: rank every card and offer for a run, name three picks and say what would change them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tfdyno.catalog.clusters import check_named_once, find_network
from tfdyno.catalog.families import family_of
from tfdyno.catalog.gpus import all_gpus
from tfdyno.catalog.software import NEWEST, check_release
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import MOST_REPLICAS
from tfdyno.core.choose.advice import Advice, Candidate
from tfdyno.core.choose.hardware import Gpu
from tfdyno.core.choose.program import Program
from tfdyno.core.choose.workload import Trace, Workload
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose._anchors import notes_on
from tfdyno.jobs.choose._candidates import candidates_of, card_of, check_shares
from tfdyno.jobs.choose._compose import compose
from tfdyno.jobs.choose._feeding import Feeder
from tfdyno.jobs.choose._request import Request as Request
from tfdyno.jobs.choose._request import run_of
from tfdyno.jobs.choose.all_fits import ONE_FIT, Fits, all_fits, check_all_fits
from tfdyno.jobs.choose.exact import add_cached, add_family, kept_quick
from tfdyno.jobs.choose.foretold import notes_on_picks
from tfdyno.jobs.choose.market import Supply, price_notes, scenario_words, supplies
from tfdyno.jobs.choose.picks import sober_picks
from tfdyno.jobs.choose.predict import (
    Predictor,
    check_batch,
    check_vendor,
    predictor_for,
)
from tfdyno.jobs.choose.scale_out import scaling_of
from tfdyno.jobs.choose.settling.open_fits import deciding
from tfdyno.jobs.choose.verify import is_proof_kept, needs_proof, prove, unproven
from tfdyno.jobs.machine.card_files import sweep_notes
from tfdyno.words.base.language import say
from tfdyno.words.choose.hours import unread_validation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.scale_out import ScaleOut

INFERENCE = ("serve", "edge")
"""Scenarios that run the forward pass only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The answer with what a report shows beside it."""

    advice: Advice
    trace: Trace
    program: Program
    """The program of the recommended card: compiled where it was, else the quick one."""
    gpus: dict[str, Gpu]
    deciding: tuple[Candidate, ...] = ()
    """Rows whose open fit decides the answer."""


def advise(
    request: Request,
    *,
    progress: Callable[[str], None] = silent,
    first: Callable[[Outcome], None] | None = None,
    refined: Callable[[str, Outcome], None] | None = None,
) -> Outcome:
    """Answer a request.

    Args:
        request: Workload, length, limits and conditions.
        progress: Called with a line at every stage.
        first: Called with the quick answer before the compiler starts, unless nothing has to be
            compiled.
        refined: Called after the compile of every GPU family that another compile follows, with the
            family and the answer so far.

    Raises:
        UsageError: A setting is wrong or contradicts another, or the workload cannot be traced.
        ToolError: The trace failed. A compile that fails leaves the quick answer and a note.
    """
    check(request)
    market = supplies(request.conditions)
    check_shares(market, request.global_batch_size)
    predictor_of = partial(
        predictor_for,
        asked=request,
        batch_size=request.batch_size or request.global_batch_size,
        fresh=request.fresh,
        card_files=request.card_files,
        progress=progress,
    )
    if request.all_fits and isinstance(request.workload, Workload):
        fits = all_fits(request, request.workload, predictor_of)
        main = fits.longest(request, market[0].gpu)
        return _noted(_outcome(request, market, main, fits), say("--all-fits compiles nothing"))
    predictor = predictor_of(request.workload)
    if request.route == "quick":
        return _noted(_outcome(request, market, predictor), say("--route quick compiles nothing"))
    predictor = replace(
        add_cached(predictor, [supply.gpu for supply in market]),
        exact_time=request.route == "exact",
    )
    shown = _Shown(first=first, refined=refined)
    return _settled(request, market, predictor, progress=progress, shown=shown)


def check(request: Request) -> None:
    """Refuse a request that has no answer, before any work; raises ``UsageError``."""
    check_batch(request.batch_size)
    if request.all_fits:
        check_all_fits(request)
    check_vendor(request.conditions.gpus)
    check_vendor(request.conditions.owned)
    if request.batch_size and request.global_batch_size:
        raise UsageError("give --batch-size or --global-batch, not both")
    check_named_once(request.link, request.network)
    if request.conditions.max_nodes > MOST_REPLICAS:
        raise UsageError(f"{request.conditions.max_nodes} machines are not possible",
                         remedy=f"give 1 to {MOST_REPLICAS}")  # fmt: skip
    if request.network:
        find_network(request.network)
    elif request.conditions.max_nodes > 1:
        raise UsageError(
            f"{request.conditions.max_nodes} machines need a network between them",
            remedy="name it with --network, ib-ndr-400 or efa-v2-p5 for example",
        )
    if request.steps and (request.epochs or request.samples):
        raise UsageError(
            "give --steps, or --epochs and --samples, not both", why="each says how long the run is"
        )
    settings.whole(max(1, request.epochs) * max(1, request.samples), "epochs x samples")
    scenario, spot = request.conditions.scenario, request.conditions.spot
    if spot and scenario in ("develop", "industrial", "serve"):
        raise UsageError(f"--spot contradicts --scenario {scenario}", why=scenario_words(scenario))
    if request.tensorflow:
        check_release(request.tensorflow)


def _unused_network(request: Request) -> tuple[str, ...]:
    if not request.network or request.conditions.max_nodes > 1:
        return ()
    return (
        say(
            "{network} is in no row: one machine is weighed at a time; give --max-nodes.",
            network=request.network,
        ),
    )


def _next_family(
    request: Request, outcome: Outcome, predictor: Predictor, reasons: dict[str, str]
) -> str:
    """Choose the family to compile for now, or none; why one is left out goes to ``reasons``.

    ``--route exact`` compiles for every row that runs under XLA, any other for those whose open fit
    decides the answer. Where that is the balanced pick's alone, its own proof settles it.
    """
    if request.route == "exact":
        rows = _all_rows(outcome)
    else:
        rows = outcome.deciding
        best = outcome.advice.pick("balanced")
        if best and all(one.slug == best.candidate.slug for one in rows):
            return ""
    for family in dict.fromkeys(family_of(outcome.gpus[one.gpu]) for one in rows):
        if family.slug in predictor.exact or family.slug in reasons:
            continue
        if family.supported:
            return family.slug
        reasons[family.slug] = family.reason
    return ""


def _all_rows(outcome: Outcome) -> tuple[Candidate, ...]:
    """Order picks first, then as ranked; without XLA nothing is compiled."""
    ordered = [pick.candidate for pick in outcome.advice.picks]
    ordered += [one for one in outcome.advice.ranking if one.verdict != "cannot run"]
    return tuple(one for one in ordered if one.estimate.execution == "xla")


def _deciding(request: Request, advice: Advice) -> tuple[Candidate, ...]:
    asked = (*request.conditions.gpus, *request.conditions.owned)
    named = {gpu.slug for gpu in asked} if len(asked) < len(all_gpus()) else set()
    return deciding(advice.ranking, advice.run, named=named)


@dataclass(slots=True, kw_only=True)
class _Shown:
    """What the reader sees of an answer while the compiler makes it sharper."""

    first: Callable[[Outcome], None] | None
    refined: Callable[[str, Outcome], None] | None
    compiled: str = ""

    def before(self, outcome: Outcome, family: str = "") -> None:
        """Show the answer that stands before a compile: ``family``'s, or that of a pick's proof."""
        if self.first:
            self.first(outcome)
        elif self.refined and self.compiled:
            self.refined(self.compiled, outcome)
        self.first, self.compiled = None, family


def _settled(
    request: Request,
    market: Sequence[Supply],
    predictor: Predictor,
    *,
    progress: Callable[[str], None],
    shown: _Shown,
) -> Outcome:
    """Return the answer in which no open fit decides, and whose balanced pick surely fits.

    A pick that turns out too small leaves the choice, and the next one is settled in its place.
    """
    outcome, doubt = _outcome(request, market, predictor), ""
    reasons: dict[str, str] = {}
    while not doubt:
        if family := _next_family(request, outcome, predictor, reasons):
            shown.before(outcome, family)
            predictor, reason = add_family(predictor, family, progress=progress)
            reasons |= {family: reason} if reason else {}
        elif pick := _unproved(request, market, outcome, predictor):
            gpu = card_of(market, pick)
            if not is_proof_kept(predictor, pick, gpu):
                shown.before(outcome)
            predictor, doubt = prove(predictor, pick, gpu, failed=reasons, progress=progress)
        else:
            break
        outcome = _outcome(request, market, predictor)
    return _with_notes(outcome, (*kept_quick(reasons), *([doubt] if doubt else [])))


def _unproved(
    request: Request, market: Sequence[Supply], outcome: Outcome, predictor: Predictor
) -> Candidate | None:
    """Return the balanced pick where a compile at its very batch has to say whether it fits."""
    best = outcome.advice.pick("balanced")
    if best is None or best.candidate.estimate.fits_verified:
        return None
    pick = best.candidate
    wanted = request.route == "exact" or needs_proof(predictor, pick, card_of(market, pick))
    return pick if wanted else None


def _with_notes(outcome: Outcome, more: tuple[str, ...]) -> Outcome:
    notes = (*outcome.advice.notes, *more)
    return replace(outcome, advice=replace(outcome.advice, notes=notes))


def _noted(outcome: Outcome, reason: str) -> Outcome:
    """Add the sentence that says why the pick is not verified, where it needs one."""
    best = outcome.advice.pick("balanced")
    if best is None or best.candidate.estimate.fits == "yes":
        return outcome
    return _with_notes(outcome, (unproven(best.candidate, reason),))


def _outcome(
    request: Request, market: Sequence[Supply], predictor: Predictor, fits: Fits = ONE_FIT
) -> Outcome:
    trace = predictor.traced.trace
    release = request.tensorflow or trace.versions.get("tensorflow", "") or NEWEST
    run = run_of(request, trace, predictor.batch_size)
    gpus = {gpu.slug: gpu for gpu in all_gpus()}
    gpus |= {one.gpu.slug: one.gpu for one in market if one.gpu.slug not in gpus}
    feeder = Feeder.of(request.feed) if request.feed else None
    beside = fits.beside(request, predictor)
    ranking_of = partial(
        candidates_of, market, predictor, run,
        global_batch_size=request.global_batch_size, tensorflow=release,
        also=beside,
    )  # fmt: skip
    drafts = ranking_of(feeder=feeder)
    waits = any(one.feeding and one.feeding.is_short for one in drafts)
    unheld = sober_picks(ranking_of()).get("balanced") if waits else None
    advice = compose(
        drafts, predictor, fits.whole(request, run), market=market, gpus=gpus,
        tensorflow=release, feeder=feeder, unheld=unheld, details=request.details,
        also=[one for one, _ in beside],
    )  # fmt: skip
    best = advice.pick("balanced")
    program = predictor.traced.program
    if best:
        program = predictor.program_for(gpus[best.candidate.gpu], best.candidate.count)
    measured = {one.gpu.slug: predictor.recalibration(one.gpu) for one in market}
    notes = (
        *fits.told(request, market, best.candidate if best else None),
        *price_notes(request.conditions),
        *advice.notes,
        *dict.fromkeys(
            note
            for one in (predictor, *(other for other, _ in beside))
            for note in unread_validation(one.traced.trace.validation)
        ),
        *notes_on_picks(predictor, advice, gpus),
        *_unused_network(request),
        *notes_on(measured.items()),
        *sweep_notes(predictor.sweeps, tuple(one.estimate.swept_by for one in advice.ranking)),
    )
    scaling: tuple[ScaleOut, ...] = ()
    offer = best.candidate.offer if best else None
    if best and offer and offer.gpu_fraction >= 1.0:
        scaling = scaling_of(predictor, gpus[best.candidate.gpu], offer, request.global_batch_size)
    rows = _deciding(request, advice)
    open_fits = tuple(dict.fromkeys(one.gpu_name for one in rows))
    advice = replace(advice, notes=notes, scaling=scaling, open_fits=open_fits)
    trace = fits.without_note_on_others(trace)
    return Outcome(advice=advice, trace=trace, program=program, gpus=gpus, deciding=rows)
