"""What the answer rests on: workload, recipe, program, prices, sources; and the next commands."""

from __future__ import annotations

import shlex
from collections import defaultdict
from typing import TYPE_CHECKING

from tfdyno.view.choose.cards import stale
from tfdyno.words.base import amounts
from tfdyno.words.base.language import say, say_later
from tfdyno.words.base.names import named
from tfdyno.words.choose import kernels
from tfdyno.words.memory.basis import fine_tune_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.choose.advice import Advice, Candidate
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.program import Program
    from tfdyno.core.choose.workload import Trace

Fact = tuple[str, str]
_PEAKS = say_later(
    "peaks computed from SM count × operations per clock × clock; memory bandwidth from the vendor"
)


def facts(
    advice: Advice, trace: Trace, program: Program, best: Candidate | None
) -> tuple[Fact, ...]:
    """Return everything assumed, in words, as pairs of a name and a statement."""
    found: list[Fact] = [(say("Workload"), _workload(advice, trace, best))]
    if best is not None:
        found.append((say("Recipe"), _recipe(best)))
    found += [(say("Trace"), _trace(trace)), (say("Program"), _program(program))]
    found += [(amounts.capital(named(name)), text) for name, text in advice.assumptions.items()]
    found += [
        (say("Prices"), _prices(advice)),
        (
            say("Hardware"),
            say(
                "{peaks}; catalogue of {date}",
                peaks=say(_PEAKS),
                date=advice.catalogue_date,
            ),
        ),
    ]
    found.append((say("Not included"), say("storage, egress, image download, tax")))
    warnings = dict.fromkeys([*advice.notes, *trace.warnings, *program.notes])
    found += [(say("Note"), text) for text in warnings]
    return tuple(found)


def _workload(advice: Advice, trace: Trace, best: Candidate | None) -> str:
    run = advice.run
    weights = say("{count:,.1f} M weights", count=trace.parameter_count / 1e6)
    shapes = [
        "×".join(str(size) for size in tensor.shape[1:]) or "1"
        for tensor in trace.tensors
        if tensor.role == "input"
    ]
    inputs = say(", input {shapes}", shapes=amounts.listed(shapes, most=3)) if shapes else ""
    loss = say(", loss {loss}", loss=trace.loss) if trace.loss else ""
    optimizer = say(", optimizer {optimizer}", optimizer=trace.optimizer) if trace.optimizer else ""
    amount = say("{count:,} samples", count=run.samples)
    if run.epochs > 1 and run.samples_per_epoch:
        amount = say(
            "{samples:,} samples × {epochs:,} epochs",
            samples=run.samples_per_epoch,
            epochs=run.epochs,
        )
    if run.length == "steps":
        amount = say("{count:,} steps", count=run.steps)
    if best is not None and run.length == "steps":
        amount += say(" of {batch:,}", batch=best.estimate.global_batch_size)
    elif best is not None:
        amount += say(
            " = {steps:,} steps of {batch:,}",
            steps=best.steps,
            batch=best.estimate.global_batch_size,
        )
    return (
        f"{trace.workload.reference}: {trace.title}{inputs}, {weights}{loss}{optimizer}; {amount}"
    )


def _recipe(best: Candidate) -> str:
    estimate = best.estimate
    many = (
        say(", global batch {batch:,}", batch=estimate.global_batch_size)
        if estimate.replicas > 1
        else ""
    )
    link = say(", link {link}", link=estimate.link) if estimate.link else ""
    return say(
        "precision {precision}, execution {execution}, batch {batch:,} per "
        "GPU{many}{link}, mode {mode}",
        precision=estimate.precision,
        execution=kernels.execution(estimate.execution),
        batch=estimate.batch_size,
        many=many,
        link=link,
        mode=estimate.mode,
    )


def _trace(trace: Trace) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in sorted(trace.versions.items()))
    return say(
        "one real {mode} step, taken by {path} in {seconds:.1f} s without "
        "weights ({reason}); {versions}",
        mode=trace.workload.mode,
        path=trace.path,
        seconds=trace.seconds_s,
        reason=trace.path_reason,
        versions=versions,
    )


def _program(program: Program) -> str:
    launches = amounts.plural(
        sum(kernel.count for kernel in program.kernels), "kernel launch", "kernel launches"
    )
    if program.route == "exact":
        how = say("compiled by XLA for GPU family {family} without a GPU", family=program.family)
    else:
        how = say("estimated from the traced graph by own fusion rules; not compiled")
    scale = (
        say("made once at batch {batch:,} and scaled", batch=program.batch_size)
        if program.marker
        else say("made at batch {batch:,}", batch=program.batch_size)
    )
    return say(
        "{how}: {launches} a step, {scale}, {seconds:.1f} s",
        how=how,
        launches=launches,
        scale=scale,
        seconds=program.seconds_s,
    )


def _prices(advice: Advice) -> str:
    dates = sorted(c.offer.priced_on for c in advice.ranking if c.offer and c.offer.priced_on)
    if not dates:
        return say("none known; catalogue of {date}", date=advice.catalogue_date)
    old: dict[str, set[str]] = defaultdict(set)
    for card in advice.ranking:
        if card.offer and stale(card, advice.made_on):
            old[card.offer.provider].add(card.offer.priced_on[:7])
    text = say(
        "recorded {first} to {last}; catalogue of {date}",
        first=dates[0],
        last=dates[-1],
        date=advice.catalogue_date,
    )
    if old:
        names = [f"{provider} ({min(months)})" for provider, months in sorted(old.items())]
        text += say(". Older than 12 months: {names}", names=amounts.listed(names, most=8))
    return text


def sources(advice: Advice, best: Candidate | None, gpus: Mapping[str, Gpu]) -> tuple[str, ...]:
    """List sources of the advice, of the recommended estimate, its card and its price."""
    found = list(advice.sources)
    if best is not None:
        found += list(best.estimate.sources)
        if best.gpu in gpus:
            found.append(gpus[best.gpu].source)
        if best.offer:
            found.append(best.offer.source)
    return tuple(dict.fromkeys(source for source in found if source))


def commands(advice: Advice, trace: Trace, best: Candidate | None) -> tuple[Fact, ...]:
    """Return the next commands with what each does, ready to copy."""
    if best is None:
        return (("tfdyno gpus", say("the cards that the catalogue knows")),)
    reference = shlex.join([trace.workload.reference, *fine_tune_options(trace.workload)])
    estimate = best.estimate
    same = f"{reference} --batch-size {estimate.batch_size} --precision {estimate.precision}"
    rival = next((c.gpu for c in advice.ranking if c.gpu != best.gpu), "")
    found = [
        (
            f"tfdyno estimate {same} --gpu {best.gpu} --route exact",
            say("this card alone, memory compiled"),
        ),
        (f"tfdyno gpus {best.gpu}", say("the card’s data and their sources")),
    ]
    if rival:
        found.append((f"tfdyno gpus --compare {best.gpu},{rival}", say("beside the next one")))
    if any(stale(card, advice.made_on) for card in advice.ranking):
        found.append(("tfdyno data refresh", say("prices of today")))
    return tuple(found)
