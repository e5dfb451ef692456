"""How several cards would hold a model that one does not, as terminal text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.base.text import WIDTH, table, wrapped
from tfdyno.words.base.amounts import gib, table_ms
from tfdyno.words.choose.advice import brief

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.choose.sharding import Sharding

MOST_TABLES = 2
_HEADERS = ("way", "cards", "GiB each", "memory by", "step ms", "formula")


def sharding_text(
    found: Sequence[Sharding], names: Mapping[str, str], *, width: int = WIDTH, colour: bool = False
) -> str:
    """Return a sentence for each card, and the ways of the first."""
    blocks = [_one(each, names[each.gpu], width, colour) for each in found[:MOST_TABLES]]
    return "\n\n".join(blocks)


def sentence(one: Sharding, name: str) -> str:
    """Return what the fewest cards are, or that none of one machine do."""
    batch, card = f"batch {one.batch_size:,}", brief(name)
    if not one.plans:
        smaller = "a smaller batch, " if one.batch_size > 1 else ""
        where = f"{one.most_cards} {card}" if one.most_cards > 1 else f"several {card}"
        return (
            f"No way by formula holds {batch} on {where}: {smaller}rematerialisation or a larger "
            "card may."
        )
    best = one.plans[0]
    together = f"{best.replicas} {card} hold {batch} together ({best.kind})"
    if not best.fits:
        return f"No way that was tried holds {batch}, as XLA plans it on {best.replicas} {card}."
    if best.memory_by == "compiler":
        return f"As XLA plans the shared step: {together}."
    return f"By formula, nothing was compiled: {together}."


def _one(one: Sharding, name: str, width: int, colour: bool) -> str:
    told = wrapped(sentence(one, name), width=width)
    if not one.plans:
        return told
    rows = [
        (
            plan.kind,
            f"{plan.replicas}",
            gib(plan.device_memory_bytes) + ("" if plan.fits else " (too much)"),
            plan.memory_by,
            table_ms(plan.step_s.best),
            plan.formula,
        )
        for plan in one.plans
    ]
    body = table(_HEADERS, rows, align="<>><><", width=width, elastic=5, spare=(5,), colour=colour)
    sources = "; ".join(dict.fromkeys(plan.source for plan in one.plans))
    rough = " The time of tensor parallel is a rough figure."
    rough = rough if any(plan.kind == "tensor parallel" for plan in one.plans) else ""
    return f"{told}\n\n{body}\n\n{wrapped(f'Formulas: {sources}.{rough}', width=width)}"
