"""What the answer rests on: workload, recipe, program, prices, sources; and the next commands."""

from __future__ import annotations

import shlex
from collections import defaultdict
from typing import TYPE_CHECKING

from tfdyno.view.choose.cards import stale
from tfdyno.words.base import amounts
from tfdyno.words.choose import kernels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.choose.advice import Advice, Candidate
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.program import Program
    from tfdyno.core.choose.workload import Trace

Fact = tuple[str, str]
_PEAKS = (
    "peaks computed from SM count × operations per clock × clock; memory bandwidth from the vendor"
)


def facts(
    advice: Advice, trace: Trace, program: Program, best: Candidate | None
) -> tuple[Fact, ...]:
    """Return everything assumed, in words, as pairs of a name and a statement."""
    found: list[Fact] = [("Workload", _workload(advice, trace, best))]
    if best is not None:
        found.append(("Recipe", _recipe(best)))
    found += [("Trace", _trace(trace)), ("Program", _program(program))]
    found += [(amounts.capital(name), text) for name, text in advice.assumptions.items()]
    found += [
        ("Prices", _prices(advice)),
        ("Hardware", f"{_PEAKS}; catalogue of {advice.catalogue_date}"),
    ]
    found.append(("Not included", "storage, egress, image download, tax"))
    warnings = dict.fromkeys([*advice.notes, *trace.warnings, *program.notes])
    found += [("Note", text) for text in warnings]
    return tuple(found)


def _workload(advice: Advice, trace: Trace, best: Candidate | None) -> str:
    run = advice.run
    weights = f"{trace.parameter_count / 1e6:,.1f} M weights"
    shapes = [
        "×".join(str(size) for size in tensor.shape[1:]) or "1"
        for tensor in trace.tensors
        if tensor.role == "input"
    ]
    inputs = f", input {amounts.listed(shapes, most=3)}" if shapes else ""
    loss = f", loss {trace.loss}" if trace.loss else ""
    optimizer = f", optimizer {trace.optimizer}" if trace.optimizer else ""
    amount = f"{run.samples:,} samples"
    if run.epochs > 1 and run.samples_per_epoch:
        amount = f"{run.samples_per_epoch:,} samples × {run.epochs:,} epochs"
    if run.length == "steps":
        amount = f"{run.steps:,} steps"
    if best is not None and run.length == "steps":
        amount += f" of {best.estimate.global_batch_size:,}"
    elif best is not None:
        amount += f" = {best.steps:,} steps of {best.estimate.global_batch_size:,}"
    return (
        f"{trace.workload.reference}: {trace.title}{inputs}, {weights}{loss}{optimizer}; {amount}"
    )


def _recipe(best: Candidate) -> str:
    estimate = best.estimate
    many = f", global batch {estimate.global_batch_size:,}" if estimate.replicas > 1 else ""
    link = f", link {estimate.link}" if estimate.link else ""
    return (
        f"precision {estimate.precision}, execution {kernels.execution(estimate.execution)}, "
        f"batch {estimate.batch_size:,} per GPU{many}{link}, mode {estimate.mode}"
    )


def _trace(trace: Trace) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in sorted(trace.versions.items()))
    return (
        f"one real {trace.workload.mode} step, taken by {trace.path} in {trace.seconds_s:.1f} s "
        f"without weights ({trace.path_reason}); {versions}"
    )


def _program(program: Program) -> str:
    launches = amounts.plural(
        sum(kernel.count for kernel in program.kernels), "kernel launch", "kernel launches"
    )
    if program.route == "exact":
        how = f"compiled by XLA for GPU family {program.family} without a GPU"
    else:
        how = "estimated from the traced graph by own fusion rules; not compiled"
    scale = (
        f"made once at batch {program.batch_size:,} and scaled"
        if program.marker
        else f"made at batch {program.batch_size:,}"
    )
    return f"{how}: {launches} a step, {scale}, {program.seconds_s:.1f} s"


def _prices(advice: Advice) -> str:
    dates = sorted(c.offer.priced_on for c in advice.ranking if c.offer and c.offer.priced_on)
    if not dates:
        return f"none known; catalogue of {advice.catalogue_date}"
    old: dict[str, set[str]] = defaultdict(set)
    for card in advice.ranking:
        if card.offer and stale(card, advice.made_on):
            old[card.offer.provider].add(card.offer.priced_on[:7])
    text = f"recorded {dates[0]} to {dates[-1]}; catalogue of {advice.catalogue_date}"
    if old:
        names = [f"{provider} ({min(months)})" for provider, months in sorted(old.items())]
        text += f". Older than 12 months: {amounts.listed(names, most=8)}"
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
        return (("tfdyno gpus", "the cards that the catalogue knows"),)
    reference = shlex.quote(trace.workload.reference)
    estimate = best.estimate
    same = f"{reference} --batch-size {estimate.batch_size} --precision {estimate.precision}"
    rival = next((c.gpu for c in advice.ranking if c.gpu != best.gpu), "")
    found = [
        (
            f"tfdyno estimate {same} --gpu {best.gpu} --route exact",
            "this card alone, memory compiled",
        ),
        (f"tfdyno gpus {best.gpu}", "the card’s data and their sources"),
    ]
    if rival:
        found.append((f"tfdyno gpus --compare {best.gpu},{rival}", "beside the next one"))
    if any(stale(card, advice.made_on) for card in advice.ranking):
        found.append(("tfdyno data refresh", "prices of today"))
    return tuple(found)
