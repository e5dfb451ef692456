"""Estimates of one step as terminal text: the answer in the first line, then the evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.settings import MOST_SAMPLES
from tfdyno.core.base.units import GIB, format_bytes, format_si, significant
from tfdyno.view.base.text import WIDTH, paint, pairs, table, wrapped
from tfdyno.view.draw.figure_memory import peak_of, sparkline, tensor_name
from tfdyno.words.base.amounts import (
    about_step,
    batch_cell,
    batch_words,
    dashed,
    gib,
    listed,
    of_gib,
    percent,
    table_ms,
)
from tfdyno.words.choose.advice import PROBABLY_NOT, brief, fit_state, is_longer_in_fit
from tfdyno.words.memory.basis import proof, recomputed, slower, standings, taken

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.workload import Trace

CAUSES = {
    "compute": "arithmetic",
    "memory": "memory traffic",
    "launch": "launching kernels",
    "communication": "communication",
    "input": "waiting for input",
}
PARTS = ("weights", "gradients", "optimizer", "activations", "inputs", "workspace", "context")
_EXECUTIONS = {
    "xla": "XLA",
    "graph": "graph without XLA",
    "eager-torch": "eager PyTorch",
    "compiled-torch": "compiled PyTorch",
}
_MOST_NAMED = 3
"""More cards than this are counted instead of named."""
_MOST_WARNINGS = 6
FITS = {
    "yes": "Fits",
    "no": "Does not fit",
    "unverified": "Should fit",
    "probably not": PROBABLY_NOT,
    "may not": "May not fit",
}

_SPARE = (7, 2, 6, 5, 3, 4)
"""Columns of the table that a narrow screen lacks: what holds the card, its range, ..."""
_DOUBTS = {
    "yes": "yes",
    "unverified": "?",
    "may not": "may not fit",
    "probably not": "no?",
    "no": "no",
}


def estimate_text(
    estimates: Sequence[Estimate],
    trace: Trace,
    names: Mapping[str, str],
    *,
    batch_source: str,
    notes: Sequence[str] = (),
    verbose: bool = False,
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Return one estimate in full, or a table of several.

    Args:
        estimates: At least one.
        trace: What was traced.
        names: Marketing name by slug.
        batch_source: Who named the batch, in words.
        notes: What went another way, one sentence each.
        verbose: Whether to list the largest tensors of one estimate too.
        width: Columns of the screen.
        colour: Whether to print bold and dim.
    """
    one = estimates[0]
    if len(estimates) == 1:
        head, body = headline(one, trace, names), _details(one, width)
        if verbose and one.live_curve_bytes:
            body = f"{body}\n\n{_held(one, width, colour)}"
    else:
        head, body = (
            _many_headline(estimates, trace, names),
            _table(estimates, names, width, colour),
        )
    common = one.warnings if len(estimates) == 1 else _warned(estimates, names)
    again = (slower(one),) if len(estimates) == 1 and one.rematerialisation else ()
    told = [wrapped(text, width=width) for text in (*trace.warnings, *common, *again, *notes)]
    blocks = [paint(wrapped(head, width=width), "bold", colour=colour), body, "\n".join(told)]
    blocks.append(assumed_line(estimates, trace, batch_source, width))
    return "\n\n".join(block for block in blocks if block)


def headline(one: Estimate, trace: Trace, names: Mapping[str, str]) -> str:
    """Return the answer for one card: time of a step and whether it fits."""
    best, bounds = about_step(one.step_s)
    cards = _cards(one, names)
    memory = of_gib(one.device_memory_bytes.best, one.usable_memory_bytes)
    return (
        f"{trace.title} at batch {one.batch_size:,} on {cards}: about {best} a step ({bounds}). "
        f"{FITS[fit_state(one)]}: {memory}{proof(one)}."
    )


def assumed_line(estimates: Sequence[Estimate], trace: Trace, batch_source: str, width: int) -> str:
    """Return what the numbers rest on; where rows differ, which rows rest on what."""
    sizes = dict.fromkeys(f"{one.batch_size:,}" for one in estimates)
    links = dict.fromkeys(one.link for one in estimates if one.link)
    networks = [name for name in dict.fromkeys(one.network for one in estimates)
                if name and name not in links]  # fmt: skip
    parts = [
        estimates[0].precision,
        _executed(estimates),
        *([estimates[0].software] if estimates[0].software else []),
        f"batch {', '.join(sizes)} ({batch_source})",
        *([_joined(tuple(links))] if links else []),
        *([f"{' or '.join(networks)} between nodes"] if networks else []),
        f"memory {_made(estimates)}",
        f"traced by {trace.path}",
        f"peak memory {standings(estimates)}",
    ]
    held = "Ranges hold about nine times in ten."
    return wrapped(f"Assumed: {', '.join(parts)}. {held}", width=width)


def _joined(links: Sequence[str]) -> str:
    if len(links) > _MOST_NAMED:
        return "the links that each card has"
    return f"link {' or '.join(links)}"


def _executed(estimates: Sequence[Estimate]) -> str:
    alone = dict.fromkeys(_EXECUTIONS[one.execution] for one in estimates if one.replicas == 1)
    several = dict.fromkeys(_EXECUTIONS[one.execution] for one in estimates if one.replicas > 1)
    if not alone or not several or alone == several:
        return " or ".join(alone | several)
    return f"{' or '.join(alone)} on one GPU, {' or '.join(several)} on several"


def _made(estimates: Sequence[Estimate]) -> str:
    compiled = sum(1 for one in estimates if one.made_by["memory"] == "exact")
    families = " and ".join(
        dict.fromkeys(one.compiled_for for one in estimates if one.compiled_for)
    )
    if compiled == len(estimates):
        return f"compiled for compute capability {families}"
    some = (
        f"compiled for {compiled} of {len(estimates)} rows (compute capability {families})"
        if compiled
        else "not compiled"
    )
    could = sum(1 for one in estimates if one.execution == "xla")  # no other step is compiled
    return f"{some}, --route exact does" if compiled < could else some


def _cards(one: Estimate, names: Mapping[str, str]) -> str:
    name = brief(names[one.gpu])
    return name if one.replicas == 1 else f"{one.replicas} x {name}"


def _details(one: Estimate, width: int) -> str:
    return pairs(
        [
            ("speed", _speed(one)),
            ("in fit", _copied(one)),
            ("held by", _causes(one)),
            ("memory", _memory(one)),
            ("batch", _limit(one)),
            ("work", f"{format_si(one.flops_per_step, 'FLOP')} a step, {percent(one.mfu_ratio)} "
                     "of the card's dense peak"),
            ("energy", _energy(one)),
            ("first step", _compile(one)),
        ],
        width=width,
    )  # fmt: skip


def _held(one: Estimate, width: int, colour: bool) -> str:
    """Write the bytes alive over the step as one line, and the tensors that are largest then."""
    share, peak_bytes = peak_of(one)
    curve = sparkline(one, min(60, width - 4))
    title = f"  alive over the step: {format_bytes(peak_bytes, 2)} at {percent(share)} of it"
    rows = [(tensor_name(each), each.part, format_bytes(each.held_bytes))
            for each in one.largest_buffers]  # fmt: skip
    body = table(("  largest at the peak", "part", "size"),
                 [(f"  {name}", part, size) for name, part, size in rows],
                 align="<<>", width=width, elastic=0, spare=(1,), colour=colour)  # fmt: skip
    return f"{title}\n  {curve}\n\n{body}"


def _speed(one: Estimate) -> str:
    rate = one.samples_per_s
    return f"{significant(rate.best, 2)} samples/s ({dashed(rate.low, rate.high)})"


def _copied(one: Estimate) -> str:
    """Say what a step of ``fit`` takes with data in the host's memory, where that is longer."""
    if one.fit_step_s is None or not is_longer_in_fit(one):
        return ""
    best, bounds = about_step(one.fit_step_s)
    size = format_bytes(one.memory_parts_bytes["inputs"], 2)
    return (
        f"about {best} a step ({bounds}) with data in host memory: {size} a batch are copied "
        "before each step, and Keras works between two; prefetch_to_device at the end of the "
        "pipeline can hide the copy, steps_per_execution the rest"
    )


def _causes(one: Estimate) -> str:
    total = sum(one.terms_s.values())
    shares = sorted(one.terms_s.items(), key=lambda item: -item[1])
    return ", ".join(
        f"{CAUSES.get(name, name)} {percent(seconds / total)}"
        for name, seconds in shares
        if total and seconds / total >= 0.005
    )


def _memory(one: Estimate) -> str:
    low, high = gib(one.device_memory_bytes.low), gib(one.device_memory_bytes.high)
    parts = [
        f"{name} {gib(one.memory_parts_bytes[name])}"
        for name in PARTS
        if one.memory_parts_bytes.get(name, 0.0) >= 0.05 * GIB
    ]
    held = f"{low}–{high} GiB on the card: {', '.join(parts)}" if parts else f"{low}–{high} GiB"
    return "; ".join(filter(None, (held, taken(one))))


def _limit(one: Estimate) -> str:
    most = one.max_batch_size
    if most is None:
        return "largest not known: the batch is part of the model"
    if not most:
        return "not even one sample fits"
    if most == MOST_SAMPLES:
        return f"{batch_words(most)} per replica fits"
    if not one.max_batch_verified:
        return f"up to {most:,} per replica fits (computed, --verify compiles it)"
    again = recomputed(one.max_batch_rematerialisation)
    return f"up to {most:,} per replica fits (compiled and checked{': ' if again else ''}{again})"


def _energy(one: Estimate) -> str:
    step_j, epoch_kwh = one.energy_j_per_step, one.energy_kwh_per_epoch
    if not step_j.best:
        return ""
    text = f"{significant(step_j.best, 2)} J a step ({dashed(step_j.low, step_j.high)})"
    if epoch_kwh is None:
        return text
    whole = f"{significant(epoch_kwh.best, 2)} kWh an epoch"
    return f"{text}, {whole} ({dashed(epoch_kwh.low, epoch_kwh.high)})"


def _compile(one: Estimate) -> str:
    if one.compile_s.best < 0.5:
        return ""
    seconds = one.compile_s
    return (
        f"about {significant(seconds.best, 2)} s longer ({dashed(seconds.low, seconds.high)}), "
        "while XLA compiles"
    )


def _many_headline(estimates: Sequence[Estimate], trace: Trace, names: Mapping[str, str]) -> str:
    fitting = [one for one in estimates if fit_state(one) not in ("no", "probably not")]
    where = f"{trace.title} at batch {estimates[0].batch_size:,}"
    if len({one.batch_size for one in estimates}) > 1:
        where = f"{trace.title} at a global batch of {estimates[0].global_batch_size:,}"
    if not fitting:
        nearest = min(estimates, key=lambda e: e.device_memory_bytes.best / e.usable_memory_bytes)
        memory = of_gib(nearest.device_memory_bytes.best, nearest.usable_memory_bytes)
        return f"{where} fits none of them: {brief(names[nearest.gpu])} would need {memory}."
    quickest = max(fitting, key=lambda one: one.samples_per_s.best)
    best, bounds = about_step(quickest.step_s)
    return (
        f"{where}: {_leads(fitting, quickest, names)}, about {best} a step ({bounds})."
        f"{_left_out(estimates)}"
    )


def _leads(fitting: Sequence[Estimate], quickest: Estimate, names: Mapping[str, str]) -> str:
    """Say who is quickest: several where figures read alike; in samples/s, if need be."""
    if any(one.step_s.best < quickest.step_s.best for one in fitting):
        rate = significant(quickest.samples_per_s.best, 2)
        return f"{_cards(quickest, names)} has the most samples/s, about {rate}"
    best = about_step(quickest.step_s)[0]
    level = [one for one in fitting if about_step(one.step_s)[0] == best
             and one.global_batch_size == quickest.global_batch_size]  # fmt: skip
    if len(level) == 1:
        return f"{_cards(quickest, names)} is the quickest"
    shown = [_cards(one, names) for one in level]
    if len(shown) > _MOST_NAMED:
        shown = [shown[0], f"{len(shown) - 1} more"]
    return f"{listed(shown)} are the quickest"


def _left_out(estimates: Sequence[Estimate]) -> str:
    states = [fit_state(one) for one in estimates]
    out, doubtful = states.count("no"), states.count("probably not")
    told = [f"{out} of {len(states)} do not fit"] if out else []
    told += [f"{doubtful} of {len(states)} probably do not (no?)"] if doubtful else []
    return f" {', '.join(told)}." if told else ""


def _table(
    estimates: Sequence[Estimate], names: Mapping[str, str], width: int, colour: bool
) -> str:
    headers = ("GPU", "step ms", "9 in 10", "samples/s", "GiB", "of", "max batch", "held by",
               "fits")  # fmt: skip
    rows = [_row(one, names) for one in sorted(estimates, key=lambda e: -e.samples_per_s.best)]
    return table(
        headers, rows, align="<>>>>>><<", width=width, elastic=0, spare=_SPARE, colour=colour
    )


def _row(one: Estimate, names: Mapping[str, str]) -> tuple[str, ...]:
    low, high = table_ms(one.step_s.low), table_ms(one.step_s.high)
    doubt = _DOUBTS[fit_state(one)]
    return (
        _cards(one, names),
        table_ms(one.step_s.best),
        f"{low}–{high}",
        significant(one.samples_per_s.best, 2),
        gib(one.device_memory_bytes.best),
        gib(one.usable_memory_bytes),
        batch_cell(one.max_batch_size),
        one.bound_by.replace("communication", "links"),
        doubt,
    )


def _warned(estimates: Sequence[Estimate], names: Mapping[str, str]) -> list[str]:
    """Write warnings, each once, with the rows that they are about where these are not all."""
    rows: dict[str, list[Estimate]] = {}
    for one in estimates:
        for text in one.warnings:
            rows.setdefault(text, []).append(one)
    return [_about(text, some, estimates, names) for text, some in rows.items()][:_MOST_WARNINGS]


def _about(
    text: str, some: Sequence[Estimate], estimates: Sequence[Estimate], names: Mapping[str, str]
) -> str:
    if len(some) == len(estimates) or any(names[one.gpu] in text for one in some):
        return text
    shown = [_cards(one, names) for one in some]
    about = (
        ", ".join(shown) if len(shown) <= _MOST_NAMED else f"{len(some)} of {len(estimates)} rows"
    )
    return f"{about}: {text}"
