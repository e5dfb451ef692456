"""Estimates of one step as terminal text: the answer in the first line, then the evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.units import format_si, significant
from tfdyno.view.advice_words import PROBABLY_NOT, brief, fit_state
from tfdyno.view.amounts import GIB, about_step, dashed, gib, of_gib, percent, table_ms
from tfdyno.view.text import WIDTH, paint, pairs, table, wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.estimate import Estimate
    from tfdyno.core.workload import Trace

CAUSES = {
    "compute": "arithmetic",
    "memory": "memory traffic",
    "launch": "launching kernels",
    "communication": "communication",
    "input": "waiting for input",
}
PARTS = ("weights", "gradients", "optimizer", "activations", "inputs", "workspace", "context")
_FITS = {
    "yes": "Fits",
    "no": "Does not fit",
    "unverified": "Should fit",
    "probably not": PROBABLY_NOT,
    "may not": "May not fit",
}

_DOUBTS = {
    "yes": "",
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
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """One estimate in full, or a table of several.

    Args:
        estimates: At least one.
        trace: What was traced.
        names: Marketing name by slug.
        batch_source: Who named the batch, in words.
        notes: What went another way, one sentence each.
        width: Columns of the screen.
        colour: Whether to print bold and dim.
    """
    one = estimates[0]
    if len(estimates) == 1:
        head, body = headline(one, trace, names), _details(one, width)
    else:
        head, body = (
            _many_headline(estimates, trace, names),
            _table(estimates, names, width, colour),
        )
    warnings = dict.fromkeys(w for each in estimates for w in each.warnings)
    common = warnings if len(estimates) == 1 else _shared(estimates)
    told = [wrapped(text, width=width) for text in (*trace.warnings, *common, *notes)]
    blocks = [paint(wrapped(head, width=width), "bold", colour=colour), body, "\n".join(told)]
    blocks.append(assumed_line(one, trace, batch_source, width))
    return "\n\n".join(block for block in blocks if block)


def headline(one: Estimate, trace: Trace, names: Mapping[str, str]) -> str:
    """The answer for one card: time of a step and whether it fits."""
    best, bounds = about_step(one.step_s)
    cards = _cards(one, names)
    memory = of_gib(one.device_memory_bytes.best, one.usable_memory_bytes)
    return (
        f"{trace.title} at batch {one.batch_size:,} on {cards}: about {best} a step ({bounds}). "
        f"{_FITS[fit_state(one)]}: {memory}."
    )


def assumed_line(one: Estimate, trace: Trace, batch_source: str, width: int) -> str:
    """What the numbers rest on."""
    made = "compiled" if one.made_by["memory"] == "exact" else "not compiled, --route exact does"
    parts = [
        one.precision,
        {"xla": "XLA", "graph": "graph without XLA", "eager-torch": "eager PyTorch"}[one.execution],
        f"batch {one.batch_size:,} ({batch_source})",
        *([f"link {one.link}"] if one.link else []),
        f"memory {made}",
        f"traced by {trace.path}",
    ]
    return wrapped(f"Assumed: {', '.join(parts)}. Ranges hold nine times in ten.", width=width)


def _cards(one: Estimate, names: Mapping[str, str]) -> str:
    name = brief(names[one.gpu])
    return name if one.replicas == 1 else f"{one.replicas} x {name}"


def _details(one: Estimate, width: int) -> str:
    return pairs(
        [
            ("speed", _speed(one)),
            ("held by", _causes(one)),
            ("memory", _memory(one)),
            ("batch", _limit(one)),
            ("work", f"{format_si(one.flops_per_step, 'FLOP')} a step, {percent(one.mfu_ratio)} "
                     "of the card's dense peak"),
            ("energy", f"{significant(one.energy_j_per_step.best, 2)} J a step "
                       f"({dashed(one.energy_j_per_step.low, one.energy_j_per_step.high)})"),
            ("first step", _compile(one)),
        ],
        width=width,
    )  # fmt: skip


def _speed(one: Estimate) -> str:
    rate = one.samples_per_s
    return f"{significant(rate.best, 2)} samples/s ({dashed(rate.low, rate.high)})"


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
    return f"{low}–{high} GiB on the card: {', '.join(parts)}" if parts else f"{low}–{high} GiB"


def _limit(one: Estimate) -> str:
    if not one.max_batch_size:
        return "not even one sample fits"
    proven = "compiled and checked" if one.max_batch_verified else "computed, --verify compiles it"
    return f"up to {one.max_batch_size:,} per replica fits ({proven})"


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
    if not fitting:
        nearest = min(estimates, key=lambda e: e.device_memory_bytes.best / e.usable_memory_bytes)
        memory = of_gib(nearest.device_memory_bytes.best, nearest.usable_memory_bytes)
        return f"{where} fits none of them: {brief(names[nearest.gpu])} would need {memory}."
    quickest = max(fitting, key=lambda one: one.samples_per_s.best)
    best, bounds = about_step(quickest.step_s)
    left = len(estimates) - len(fitting)
    out = f" {left} of {len(estimates)} do not fit." if left else ""
    return (
        f"{where}: {_cards(quickest, names)} is the quickest, about {best} a step ({bounds}).{out}"
    )


def _table(
    estimates: Sequence[Estimate], names: Mapping[str, str], width: int, colour: bool
) -> str:
    headers = ("GPU", "step ms", "9 in 10", "samples/s", "GiB", "of", "max batch", "held by", "")
    rows = [_row(one, names) for one in sorted(estimates, key=lambda e: -e.samples_per_s.best)]
    return table(headers, rows, align="<>>>>>><<", width=width, elastic=0, colour=colour)


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
        f"{one.max_batch_size:,}",
        one.bound_by.replace("communication", "links"),
        doubt,
    )


def _shared(estimates: Sequence[Estimate]) -> list[str]:
    """Warnings in the order of the cards, each once."""
    return list(dict.fromkeys(text for one in estimates for text in one.warnings))[:6]
