"""Findings about one step in words: its memory, what holds it back, its kernels and layers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tfdyno.core.base.units import GIB
from tfdyno.view.choose.cards import card_name, distinct_cards, fits, whole
from tfdyno.view.choose.sentences import Finding
from tfdyno.view.draw.layers import OTHER
from tfdyno.words.base import amounts
from tfdyno.words.base.language import joined, say
from tfdyno.words.choose import kernels
from tfdyno.words.memory.basis import slower, standing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.choose.advice import Advice, Candidate
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.view.draw.layers import LayerGroup

_NEARLY_ALL_RATIO = 0.95


def memory(advice: Advice, best: Candidate, gpus: Mapping[str, Gpu]) -> Finding:
    """Say from which size of card on the step fits, and what takes the memory."""
    estimate = best.estimate
    needed = f"{amounts.gib(estimate.device_memory_bytes.best)} GiB"
    cards = [
        card for card in distinct_cards(advice, single=True) if card.gpu in gpus and whole(card)
    ]
    labels = [(gpus[card.gpu].memory_bytes, fits(card)) for card in cards]
    refused = [size for size, fine in labels if not fine]
    border = max(refused, default=0)
    above = [size for size, fine in labels if fine and size > border]
    if not labels or not any(fine for _, fine in labels):
        heading = say("The step needs {needed}: it fits on no card of the catalogue", needed=needed)
    elif not refused:
        heading = say(
            "The step needs {needed}: it fits on every card of the catalogue", needed=needed
        )
    elif not above:
        number = sum(fine for _, fine in labels)
        heading = say(
            "The step needs {needed}: it fits on {number} of {count} cards",
            needed=needed,
            number=number,
            count=len(labels),
        )
    else:
        heading = say(
            "The step needs {needed}: it fits from {size} up",
            needed=needed,
            size=_label_gb(min(above)),
        )
    said = (
        _memory_lead(estimate),
        slower(estimate),
        say("The figure is {standing}.", standing=standing(estimate)),
    )
    return Finding(heading, joined(said))


def _label_gb(size_bytes: float) -> str:
    """Return size on the box: GiB where that is whole, else GB."""
    gib = size_bytes / GIB
    return f"{gib:.0f} GB" if abs(gib - round(gib)) < 0.02 else f"{size_bytes / 1e9:.0f} GB"


def _memory_lead(estimate: Estimate) -> str:
    parts = estimate.memory_parts_bytes
    total = sum(parts.values())
    if total <= 0:
        return say("How it divides into parts is not known.")
    growing = parts.get("activations", 0.0) + parts.get("inputs", 0.0)
    state = sum(parts.get(name, 0.0) for name in ("weights", "gradients", "optimizer"))
    if growing >= 0.5 * total:
        return say(
            "Activations and inputs take {growing} of it and grow with the batch. A "
            "larger card buys a larger batch and nothing else.",
            growing=amounts.percent(growing / total),
        )
    if state >= 0.5 * total:
        return say(
            "Weights, gradients and optimizer state take {state} of it. They do not "
            "shrink with the batch; a smaller optimizer state would help first.",
            state=amounts.percent(state / total),
        )
    return say(
        "Activations and inputs take {growing} of it and grow with the batch; "
        "weights, gradients and optimizer state take {state}.",
        growing=amounts.percent(growing / total),
        state=amounts.percent(state / total),
    )


def terms(cards: Sequence[Candidate]) -> Finding:
    """Return which cause holds back most cards, and which cards are the exception."""
    bounds = [(card, card.estimate.bound_by) for card in cards if card.estimate.bound_by]
    if not bounds:
        return Finding(
            say("What holds the cards back is not known"), say("No estimate names a cause.")
        )
    counts = Counter(bound for _, bound in bounds).most_common()
    first, number = counts[0]
    lead = _terms_lead(first)
    subject = amounts.capital(kernels.cause(first))
    if number == len(bounds):
        every = say("each of these cards") if number > 1 else card_name(bounds[0][0])
        return Finding(say("{cause} sets the pace on {cards}", cause=subject, cards=every), lead)
    odd = [f"{card_name(c)} ({kernels.cause(b)})" for c, b in bounds if b != first]
    if number > len(bounds) / 2:
        but = say("one") if len(odd) == 1 else str(len(odd))
        exceptions = say("Otherwise: {odd}.", odd=amounts.listed(odd, most=4))
        return Finding(
            say("{cause} sets the pace on every card but {count}", cause=subject, count=but),
            joined((lead, exceptions)),
        )
    second, other = counts[1]
    heading = say(
        "{cause} holds back {number} of {count} cards, {second} {other}",
        cause=subject,
        number=number,
        count=len(bounds),
        second=kernels.cause(second),
        other=other,
    )
    return Finding(heading, say("There is no one remedy: it depends on the card."))


def _terms_lead(cause: str) -> str:
    return {
        "memory": say("Faster arithmetic would change little here; memory bandwidth decides."),
        "compute": say(
            "Cards with more arithmetic are faster here; memory bandwidth matters less."
        ),
        "launch": say("The kernels are too short: a larger batch would use the cards better."),
        "communication": say(
            "GPUs wait for each other; a faster link or a larger batch would help."
        ),
        "input": say("The GPUs outrun what feeds them; more CPU cores or cached data would help."),
    }.get(cause, "")


def roofline(estimate: Estimate) -> Finding:
    """Return which kind of kernel takes most of the step, and how near to the roof it runs."""
    total = sum(estimate.class_s.values())
    if total <= 0:
        return Finding(
            say("Which kernels take the time is not known"), say("No kernel was classified.")
        )
    kind = max(estimate.class_s, key=lambda name: estimate.class_s[name])
    share = estimate.class_s[kind] / total
    arithmetic = estimate.class_s.get("convolution", 0.0) + estimate.class_s.get("gemm", 0.0)
    words = amounts.capital(kernels.kind(kind))
    is_one = kind == "window"
    lead = say(
        "Each dot is a group of kernels, its area the share of the step. Dots on "
        "the slanted roof can only go faster with fewer bytes; dots far under the "
        "flat roof leave arithmetic idle. The whole step reaches {share} of "
        "the card’s arithmetic.",
        share=amounts.percent(estimate.mfu_ratio),
    )
    if share < 0.4:
        return Finding(
            say(
                "No kind of kernel dominates: {kind} takes {share}"
                if is_one
                else "No kind of kernel dominates: {kind} take {share}",
                kind=kernels.kind(kind),
                share=amounts.percent(share),
            ),
            lead,
        )
    if kind in ("convolution", "gemm"):
        return Finding(
            say(
                "{kind} take {share} of the kernels’ time",
                kind=words,
                share=amounts.percent(share),
            ),
            lead,
        )
    rest = (
        say(", arithmetic kernels {share}", share=amounts.percent(arithmetic / total))
        if arithmetic
        else ""
    )
    return Finding(
        say(
            "{kind} takes {share} of the kernels’ time{rest}"
            if is_one
            else "{kind} take {share} of the kernels’ time{rest}",
            kind=words,
            share=amounts.percent(share),
            rest=rest,
        ),
        lead,
    )


def coverage(estimate: Estimate) -> str:
    """Say how much of the kernels' time the roofline's groups cover; empty when nearly all."""
    total = sum(estimate.class_s.values())
    share = sum(point.time_s for point in estimate.roofline) / total if total else 1.0
    if not estimate.roofline or share > _NEARLY_ALL_RATIO:
        return ""
    return say(
        "The dots are the longest groups: {share} of the kernels’ time. The rest "
        "is in shorter ones.",
        share=amounts.percent(share),
    )


def layers(groups: Sequence[LayerGroup]) -> Finding:
    """Return the group of layers that takes most, set against its share of the arithmetic."""
    total_s = sum(group.step_s for group in groups)
    if total_s <= 0:
        return Finding(
            say("Where the time goes by layer is not known"), say("The program names no layers.")
        )
    named = [group for group in groups if group.name != say(OTHER)] or groups
    top = max(named, key=lambda group: group.step_s)
    share = top.step_s / total_s
    flops = sum(group.flops for group in groups)
    work = top.flops / flops if flops else 0.0
    lead = say("Layers whose names begin alike are added up; shares are surer than milliseconds.")
    if share < 1.6 / len(groups) and len(groups) > 2:
        return Finding(
            say(
                "No layer dominates: {layers} takes most with {share}",
                layers=top.name,
                share=amounts.percent(share),
            ),
            lead,
        )
    heading = say(
        "{layers} takes {share} of the step", layers=top.name, share=amounts.percent(share)
    )
    if flops and (share > 1.25 * work or share < 0.8 * work):
        heading += say(
            " with only {share} of the arithmetic"
            if share > 1.25 * work
            else " with {share} of the arithmetic",
            share=amounts.percent(work),
        )
    return Finding(heading, lead)
