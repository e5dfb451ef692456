"""Estimates of one step as terminal text: the answer in the first line, then the evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.settings import MOST_SAMPLES
from tfdyno.core.base.units import GIB, format_bytes, format_si, significant
from tfdyno.view.base.text import WIDTH, paint, pairs, table, wrapped
from tfdyno.view.choose._estimates import (
    MOST_NAMED,
    cards_of,
    estimates_table,
    many_headline,
    warned,
)
from tfdyno.view.draw.figure_memory import peak_of, sparkline, tensor_name
from tfdyno.words.base.amounts import (
    about_step,
    batch_words,
    dashed,
    gib,
    of_gib,
    percent,
)
from tfdyno.words.base.language import joined, say, say_later
from tfdyno.words.base.names import named
from tfdyno.words.choose.advice import PROBABLY_NOT, fit_state, is_longer_in_fit
from tfdyno.words.memory.basis import proof, recomputed, slower, standings, taken

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.workload import Trace

CAUSES = {
    "compute": say_later("arithmetic"),
    "memory": say_later("memory traffic"),
    "launch": say_later("launching kernels"),
    "communication": say_later("communication"),
    "input": say_later("waiting for input"),
}
PARTS = ("weights", "gradients", "optimizer", "activations", "inputs", "workspace", "context")
_EXECUTIONS = {
    "xla": "XLA",
    "graph": say_later("graph without XLA"),
    "eager-torch": say_later("eager PyTorch"),
    "compiled-torch": say_later("compiled PyTorch"),
}
FITS = {
    "yes": say_later("Fits"),
    "no": say_later("Does not fit"),
    "unverified": say_later("Should fit"),
    "probably not": PROBABLY_NOT,
    "may not": say_later("May not fit"),
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
            many_headline(estimates, trace, names),
            estimates_table(estimates, names, width, colour),
        )
    common = one.warnings if len(estimates) == 1 else warned(estimates, names)
    again = (slower(one),) if len(estimates) == 1 and one.rematerialisation else ()
    told = [wrapped(text, width=width) for text in (*trace.warnings, *common, *again, *notes)]
    blocks = [paint(wrapped(head, width=width), "bold", colour=colour), body, "\n".join(told)]
    blocks.append(assumed_line(estimates, trace, batch_source, width))
    return "\n\n".join(block for block in blocks if block)


def headline(one: Estimate, trace: Trace, names: Mapping[str, str]) -> str:
    """Return the answer for one card: time of a step and whether it fits."""
    best, bounds = about_step(one.step_s)
    cards = cards_of(one, names)
    memory = of_gib(one.device_memory_bytes.best, one.usable_memory_bytes)
    return say(
        "{title} at batch {batch:,} on {cards}: about {best} a step "
        "({bounds}). {fits}: {memory}{proof}.",
        title=trace.title,
        batch=one.batch_size,
        cards=cards,
        best=best,
        bounds=bounds,
        fits=say(FITS[fit_state(one)]),
        memory=memory,
        proof=proof(one),
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
        say("batch {sizes} ({source})", sizes=", ".join(sizes), source=named(batch_source)),
        *([_joined(tuple(links))] if links else []),
        *(
            [say("{networks} between nodes", networks=say(" or ").join(networks))]
            if networks
            else []
        ),
        say("memory {made}", made=_made(estimates)),
        say("traced by {path}", path=trace.path),
        say("peak memory {standings}", standings=standings(estimates)),
    ]
    told = say("Assumed: {said}.", said=say(", ").join(parts))
    held = say("Ranges hold about nine times in ten.")
    return wrapped(joined((told, held)), width=width)


def _joined(links: Sequence[str]) -> str:
    if len(links) > MOST_NAMED:
        return say("the links that each card has")
    return say("link {links}", links=say(" or ").join(links))


def _executed(estimates: Sequence[Estimate]) -> str:
    ways = [(say(_EXECUTIONS[one.execution]), one.replicas == 1) for one in estimates]
    alone = dict.fromkeys(way for way, is_alone in ways if is_alone)
    several = dict.fromkeys(way for way, is_alone in ways if not is_alone)
    if not alone or not several or alone == several:
        return say(" or ").join(alone | several)
    return say(
        "{alone} on one GPU, {several} on several",
        alone=say(" or ").join(alone),
        several=say(" or ").join(several),
    )


def _made(estimates: Sequence[Estimate]) -> str:
    compiled = sum(1 for one in estimates if one.made_by["memory"] == "exact")
    families = say(" and ").join(
        dict.fromkeys(one.compiled_for for one in estimates if one.compiled_for)
    )
    if compiled == len(estimates):
        return say("compiled for compute capability {families}", families=families)
    some = (
        say(
            "compiled for {count} of {all} rows (compute capability {families})",
            count=compiled,
            all=len(estimates),
            families=families,
        )
        if compiled
        else say("not compiled")
    )
    could = sum(1 for one in estimates if one.execution == "xla")  # no other step is compiled
    return say("{some}, --route exact does", some=some) if compiled < could else some


def _details(one: Estimate, width: int) -> str:
    return pairs(
        [
            (say("speed"), _speed(one)),
            (say("in fit"), _copied(one)),
            (say("held by"), _causes(one)),
            (say("memory"), _memory(one)),
            (say("batch"), _limit(one)),
            (say("work"), _work(one)),
            (say("energy"), _energy(one)),
            (say("first step"), _compile(one)),
        ],
        width=width,
    )


def _work(one: Estimate) -> str:
    return say(
        "{work} a step, {share} of the card's dense peak",
        work=format_si(one.flops_per_step, "FLOP"),
        share=percent(one.mfu_ratio),
    )


def _held(one: Estimate, width: int, colour: bool) -> str:
    """Write the bytes alive over the step as one line, and the tensors that are largest then."""
    share, peak_bytes = peak_of(one)
    curve = sparkline(one, min(60, width - 4))
    title = say(
        "  alive over the step: {peak} at {share} of it",
        peak=format_bytes(peak_bytes, 2),
        share=percent(share),
    )
    rows = [(tensor_name(each), named(each.part), format_bytes(each.held_bytes))
            for each in one.largest_buffers]  # fmt: skip
    body = table((say("  largest at the peak"), say("part"), say("size")),
                 [(f"  {name}", part, size) for name, part, size in rows],
                 align="<<>", width=width, elastic=0, spare=(1,), colour=colour)  # fmt: skip
    return f"{title}\n  {curve}\n\n{body}"


def _speed(one: Estimate) -> str:
    rate = one.samples_per_s
    return say(
        "{rate} samples/s ({bounds})",
        rate=significant(rate.best, 2),
        bounds=dashed(rate.low, rate.high),
    )


def _copied(one: Estimate) -> str:
    """Say what a step of ``fit`` takes with data in the host's memory, where that is longer."""
    if one.fit_step_s is None or not is_longer_in_fit(one):
        return ""
    best, bounds = about_step(one.fit_step_s)
    size = format_bytes(one.memory_parts_bytes["inputs"], 2)
    return say(
        "about {best} a step ({bounds}) with data in host memory: {size} a batch "
        "are copied before each step, and Keras works between two; "
        "prefetch_to_device at the end of the pipeline can hide the copy, "
        "steps_per_execution the rest",
        best=best,
        bounds=bounds,
        size=size,
    )


def _causes(one: Estimate) -> str:
    total = sum(one.terms_s.values())
    shares = sorted(one.terms_s.items(), key=lambda item: -item[1])
    return say(", ").join(
        f"{say(CAUSES.get(name, name))} {percent(seconds / total)}"
        for name, seconds in shares
        if total and seconds / total >= 0.005
    )


def _memory(one: Estimate) -> str:
    low, high = gib(one.device_memory_bytes.low), gib(one.device_memory_bytes.high)
    parts = [
        f"{named(name)} {gib(one.memory_parts_bytes[name])}"
        for name in PARTS
        if one.memory_parts_bytes.get(name, 0.0) >= 0.05 * GIB
    ]
    held = (
        say(
            "{low}–{high} GiB on the card: {parts}", low=low, high=high, parts=say(", ").join(parts)
        )
        if parts
        else f"{low}–{high} GiB"
    )
    return say("; ").join(filter(None, (held, taken(one))))


def _limit(one: Estimate) -> str:
    most = one.max_batch_size
    if most is None:
        return say("largest not known: the batch is part of the model")
    if not most:
        return say("not even one sample fits")
    if most == MOST_SAMPLES:
        return say("{batch} per replica fits", batch=batch_words(most))
    if not one.max_batch_verified:
        return say("up to {batch:,} per replica fits (computed, --verify compiles it)", batch=most)
    again = recomputed(one.max_batch_rematerialisation)
    if again:
        return say(
            "up to {batch:,} per replica fits (compiled and checked: {again})",
            batch=most,
            again=again,
        )
    return say("up to {batch:,} per replica fits (compiled and checked)", batch=most)


def _energy(one: Estimate) -> str:
    step_j, epoch_kwh = one.energy_j_per_step, one.energy_kwh_per_epoch
    if not step_j.best:
        return ""
    text = say(
        "{energy} J a step ({bounds})",
        energy=significant(step_j.best, 2),
        bounds=dashed(step_j.low, step_j.high),
    )
    if epoch_kwh is None:
        return text
    whole = say(
        "{energy} kWh an epoch ({bounds})",
        energy=significant(epoch_kwh.best, 2),
        bounds=dashed(epoch_kwh.low, epoch_kwh.high),
    )
    return say("{step}, {epoch}", step=text, epoch=whole)


def _compile(one: Estimate) -> str:
    if one.compile_s.best < 0.5:
        return ""
    seconds = one.compile_s
    return say(
        "about {seconds} s longer ({bounds}), while XLA compiles",
        seconds=significant(seconds.best, 2),
        bounds=dashed(seconds.low, seconds.high),
    )
