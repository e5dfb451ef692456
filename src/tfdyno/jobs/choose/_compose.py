"""From ranked candidates to the advice: picks, headline, changes, assumptions, sources."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.catalog.assumptions import assumed, assumption_sources
from tfdyno.catalog.generations import generations
from tfdyno.core.base.clock import today
from tfdyno.core.choose.advice import Advice
from tfdyno.core.choose.hardware import OWNED
from tfdyno.jobs.choose._candidates import card_of, on_its_machines
from tfdyno.jobs.choose._changes import buying_of, changes_of
from tfdyno.jobs.choose.market import scenario_words
from tfdyno.jobs.choose.picks import sober_picks, told_picks
from tfdyno.words.base.language import say, say_later
from tfdyno.words.base.names import named
from tfdyno.words.choose.advice import headline
from tfdyno.words.choose.hours import validation_words
from tfdyno.words.memory.basis import standings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.choose.advice import Candidate, Run
    from tfdyno.core.choose.generation import Software
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.workload import Trace
    from tfdyno.jobs.choose._feeding import Feeder
    from tfdyno.jobs.choose.market import Supply
    from tfdyno.jobs.choose.predict import Predictor

IN_TIME = say_later("data arrive in time: no limit by disk, network or decoding")


def compose(
    ranking: Sequence[Candidate],
    predictor: Predictor,
    run: Run,
    *,
    market: Sequence[Supply],
    gpus: Mapping[str, Gpu],
    tensorflow: str,
    feeder: Feeder | None = None,
    unheld: Candidate | None = None,
    details: bool = True,
    also: Sequence[Predictor] = (),
) -> Advice:
    """Draw the conclusions from a ranking.

    Args:
        ranking: All candidates, ranked.
        predictor: Answers for every card.
        run: How long.
        market: What the candidates are made of.
        gpus: All cards by slug.
        tensorflow: Release whose wheel must run.
        feeder: The input that was measured; None: data arrive in time.
        unheld: What the balanced pick would be if they did.
        details: Whether the picks are told kernel by kernel.
        also: Answer for the other calls of ``fit`` in the same script.
    """
    detailed = tuple(ranking)
    if details:
        detailed = _with_details(ranking, (predictor, *also), market, feeder)
    picks = told_picks(detailed, run)
    balanced = next((one.candidate for one in picks if one.title == "balanced"), None)
    trace = predictor.traced.trace
    return Advice(
        title=f"{trace.title} ({trace.workload.reference})",
        headline=headline(detailed, balanced, run),
        run=run,
        ranking=detailed,
        picks=picks,
        changes=changes_of(detailed, balanced, gpus, unheld=unheld),
        buy_or_rent=buying_of(detailed, gpus, run),
        assumptions=_assumptions(detailed, predictor, run, tensorflow, feeder),
        sources=_sources(detailed),
        catalogue_date=max((one.offer.priced_on for one in ranking if one.offer), default=""),
        made_on=today().isoformat(),
        exact=_all_compiled(ranking),
        notes=feeder.notes(detailed, picks) if feeder else (),
    )


def _all_compiled(ranking: Sequence[Candidate]) -> bool:
    """Return whether the compiler's memory stands behind every row it can answer for: XLA's."""
    compiled = [
        one.estimate.made_by["memory"] == "exact"
        for one in ranking
        if one.verdict not in ("no offer", "cannot run") and one.estimate.execution == "xla"
    ]
    return bool(compiled) and all(compiled)


def _with_details(
    ranking: Sequence[Candidate],
    predictors: Sequence[Predictor],
    market: Sequence[Supply],
    feeder: Feeder | None,
) -> tuple[Candidate, ...]:
    """Give the picks, or the first row without any, all that the page tells of them."""
    named = {one.slug for one in sober_picks(ranking).values()} or {c.slug for c in ranking[:1]}
    found = []
    for one in ranking:
        if one.slug in named:
            gpu = card_of(market, one)
            full = _maker_of(one, gpu, predictors).estimate(
                gpu,
                replicas=one.count,
                batch_size=one.estimate.batch_size,
                details=True,
                explained=True,
            )
            if feeder:
                full, _ = feeder.on(full, one.offer, gpu)
            one = replace(one, estimate=full)  # noqa: PLW2901  (the same candidate, told in full)
        found.append(one)
    return tuple(found)


def _maker_of(one: Candidate, gpu: Gpu, predictors: Sequence[Predictor]) -> Predictor:
    """Return what made a row's estimate: of several calls of ``fit`` the one that it tells of."""
    own = [on_its_machines(each, one.offer) for each in predictors]
    held, size = one.estimate.device_memory_bytes, one.estimate.batch_size
    others = (
        each for each in own[1:]
        if each.estimate(gpu, replicas=one.count, batch_size=size).device_memory_bytes == held
        and own[0].estimate(gpu, replicas=one.count, batch_size=size).device_memory_bytes != held
    )  # fmt: skip
    return next(others, own[0])


def _assumptions(
    ranking: Sequence[Candidate],
    predictor: Predictor,
    run: Run,
    tensorflow: str,
    feeder: Feeder | None,
) -> dict[str, str]:
    trace, assumption = predictor.traced.trace, assumed()
    precision = predictor.precision or trace.policy
    found = {
        "batch": say(
            "{batch:,} per replica ({source}){baked}",
            batch=predictor.batch_size,
            source=named(predictor.batch_source),
            baked=_baked(trace),
        ),
        "length": _length(run, ranking),
        "validation": validation_words(run, trace.validation, trace.workload.mode),
        "precision": precision + ("" if predictor.precision else say(" (the script's own)")),
        "execution": _execution(predictor, ranking),
        "software": _software(predictor.traced.software),
        "scaling": _scaling(ranking, run, predictor),
        "scenario": f"{run.scenario}: {scenario_words(run.scenario)}",
        "TensorFlow": say("the official Linux wheel of {tensorflow}", tensorflow=tensorflow),
        "memory": say(
            "peak memory {standings}", standings=standings([one.estimate for one in ranking])
        )
        if ranking
        else "",
        "optimizer": trace.optimizer,
        "input": feeder.assumption() if feeder else say(IN_TIME),
    }
    if any(one.spot for one in ranking):
        found["spot"] = say(
            "{ratio:.0%} more hours for restarts",
            ratio=assumption.spot_overhead_ratio,
        )
    if any(one.offer and one.offer.provider != OWNED for one in ranking):
        found["start-up"] = say(
            "{minutes:g} min until a rented machine is ready",
            minutes=assumption.start_up_s / 60.0,
        )
    if any(one.estimate.execution == "graph" for one in ranking):
        found["graph building"] = say(
            "{seconds:g} s per GPU before the first step",
            seconds=assumption.graph_build_s,
        )
    if any(one.offer and one.offer.provider == OWNED for one in ranking):
        found["electricity"] = say(
            "${price:g} per kWh for owned cards",
            price=assumption.electricity_usd_per_kwh,
        )
    shares = {one.offer.gpu_fraction for one in ranking if one.offer}
    if min(shares, default=1.0) < 1.0:
        found["virtual GPUs"] = say("their share of memory, multiprocessors and bandwidth, no more")
    return {name: text for name, text in found.items() if text}


def _baked(trace: Trace) -> str:
    return "" if trace.marker else say(", part of the model: the largest batch is not known")


def _length(run: Run, ranking: Sequence[Candidate]) -> str:
    if run.length == "steps":
        return say(
            "{steps:,} optimizer steps on every row ({source}): more GPUs see "
            "more samples in them; --samples holds the data instead",
            steps=run.steps,
            source=named(run.length_source),
        )
    several = any(one.count > 1 for one in ranking)
    shared = say(", which several GPUs share") if several else ""
    return say(
        "{samples:,} samples ({source}){shared}",
        samples=run.samples,
        source=named(run.length_source),
        shared=shared,
    )


def _execution(predictor: Predictor, ranking: Sequence[Candidate]) -> str:
    if predictor.execution:
        return say("{execution} everywhere", execution=predictor.execution)
    one, many = predictor.execution_for(1), predictor.execution_for(2)
    said = (
        one
        if one == many
        else say("{one} on one GPU, {many} on several, as Keras does", one=one, many=many)
    )
    left = any(row.count == 1 and row.estimate.execution != one for row in ranking)
    return say("{said}; graph where XLA cannot compile", said=said) if left else said


def _software(one: Software) -> str:
    """Return the release that is answered for, why, and whose measured steps stand behind it."""
    behind = next(each for each in generations() if each.name == one.generation)
    why = {
        "asked": say("as asked"),
        "installed": say("installed here"),
        "newest": say("the newest known"),
    }
    first, last = behind.tensorflow_measured
    return say(
        "{software} ({why}); times rest on measured steps of TensorFlow {first} to {last}: "
        "{summary}",
        software=one.name,
        why=why[one.chosen],
        first=first,
        last=last,
        summary=named(behind.summary),
    )


def _scaling(ranking: Sequence[Candidate], run: Run, predictor: Predictor) -> str:
    if all(one.count == 1 for one in ranking):
        return ""
    if run.holds == "global batch":
        return say(
            "global batch {batch:,} held, shared among the GPUs",
            batch=predictor.batch_size,
        )
    if predictor.traced.trace.workload.mode == "infer":
        return say("every GPU serves batches of {batch:,} by itself", batch=predictor.batch_size)
    return say(
        "batch {batch:,} on every GPU, so the global batch grows with their "
        "number: the learning rate has to follow",
        batch=predictor.batch_size,
    )


def _sources(ranking: Sequence[Candidate]) -> tuple[str, ...]:
    """List models and cards of the feasible rows, dates of prices, the tool's own assumptions."""
    found: dict[str, None] = {}
    for one in ranking:
        if one.verdict == "feasible":
            found.update(dict.fromkeys(one.estimate.sources))
            if one.offer and one.offer.priced_on:
                found[
                    f"price of {one.offer.provider}, {one.offer.priced_on}: {one.offer.source}"
                ] = None
    found.update(dict.fromkeys(f"{k}: {v}" for k, v in assumption_sources().items()))
    return tuple(found)
