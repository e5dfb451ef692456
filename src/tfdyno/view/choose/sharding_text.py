"""How several cards would hold a model that one does not, as terminal text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.base.text import WIDTH, table, wrapped
from tfdyno.words.base.amounts import gib, table_ms
from tfdyno.words.base.language import say, say_later
from tfdyno.words.base.names import named
from tfdyno.words.choose.advice import brief

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.choose.sharding import Sharding

MOST_TABLES = 2
_HEADERS = (
    say_later("way"),
    say_later("cards"),
    say_later("GiB each"),
    say_later("memory by"),
    say_later("step ms"),
    say_later("formula"),
)


def sharding_text(
    found: Sequence[Sharding], names: Mapping[str, str], *, width: int = WIDTH, colour: bool = False
) -> str:
    """Return a sentence for each card, and the ways of the first."""
    blocks = [_one(each, names[each.gpu], width, colour) for each in found[:MOST_TABLES]]
    return "\n\n".join(blocks)


def sentence(one: Sharding, name: str) -> str:
    """Return what the fewest cards are, or that none of one machine do."""
    batch, card = say("batch {batch:,}", batch=one.batch_size), brief(name)
    if not one.plans:
        smaller = say("a smaller batch, ") if one.batch_size > 1 else ""
        where = (
            f"{one.most_cards} {card}" if one.most_cards > 1 else say("several {card}", card=card)
        )
        return say(
            "No way by formula holds {batch} on {where}: {smaller}rematerialisation or "
            "a larger card may.",
            batch=batch,
            where=where,
            smaller=smaller,
        )
    best = one.plans[0]
    together = say(
        "{replicas} {card} hold {batch} together ({kind})",
        replicas=best.replicas,
        card=card,
        batch=batch,
        kind=named(best.kind),
    )
    if not best.fits:
        return say(
            "No way that was tried holds {batch}, as XLA plans it on {replicas} {card}.",
            batch=batch,
            replicas=best.replicas,
            card=card,
        )
    if best.memory_by == "compiler":
        return say("As XLA plans the shared step: {together}.", together=together)
    return say("By formula, nothing was compiled: {together}.", together=together)


def _one(one: Sharding, name: str, width: int, colour: bool) -> str:
    told = wrapped(sentence(one, name), width=width)
    if not one.plans:
        return told
    rows = [
        (
            named(plan.kind),
            f"{plan.replicas}",
            gib(plan.device_memory_bytes) + ("" if plan.fits else say(" (too much)")),
            named(plan.memory_by),
            table_ms(plan.step_s.best),
            plan.formula,
        )
        for plan in one.plans
    ]
    body = table(
        tuple(map(say, _HEADERS)),
        rows,
        align="<>><><",
        width=width,
        elastic=5,
        spare=(5,),
        colour=colour,
    )
    sources = "; ".join(dict.fromkeys(plan.source for plan in one.plans))
    rough = say(" The time of tensor parallel is a rough figure.")
    rough = rough if any(plan.kind == "tensor parallel" for plan in one.plans) else ""
    formulas = wrapped(
        say("Formulas: {sources}.{rough}", sources=sources, rough=rough), width=width
    )
    return f"{told}\n\n{body}\n\n{formulas}"
