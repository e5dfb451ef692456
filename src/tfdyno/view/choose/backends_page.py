"""The page of TensorFlow and JAX side by side, as one self-contained HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.clock import now
from tfdyno.core.base.version import VERSION
from tfdyno.view.base.template import page
from tfdyno.view.choose.backends_text import (
    assumed_words,
    backends_document,
    headers,
    row_of,
    stopped_words,
)
from tfdyno.view.draw.svg import Table
from tfdyno.words.base.language import say
from tfdyno.words.choose.advice import brief
from tfdyno.words.choose.backends import card_words, verdict_heading

if TYPE_CHECKING:
    from tfdyno.core.choose.backends import BackendsAnswer, BackendsOnCard

_WORDS = frozenset((0, 5, 7))
"""Columns that are words."""


def backends_page(found: BackendsAnswer) -> str:
    """Make the page; it loads nothing from anywhere and reads without JavaScript."""
    first = found.cards[0]
    return page(
        "backends",
        backends_document(found),
        reference=found.trace.workload.reference,
        setup=(found.title, say("batch {batch:,}", batch=found.batch_size)),
        date=now()[:10],
        headline=verdict_heading(first),
        answer=card_words(found, first),
        cards=[_card(found, card) for card in found.cards],
        notes=[*found.notes, assumed_words(found)],
        commands=[(found.command, say("Both in turns on the card, with equal losses"))]
        if found.command
        else [],
        version=VERSION,
    )


def _card(found: BackendsAnswer, card: BackendsOnCard) -> dict[str, Any]:
    name, is_first = brief(card.gpu_name), card is found.cards[0]  # whose answer heads the page
    return {
        "id": card.gpu,
        "name": name,
        "heading": say("Each way on {card}", card=name) if is_first else verdict_heading(card),
        "answer": "" if is_first else card_words(found, card),
        "table": Table(
            headings=("", *headers()),
            rows=tuple(tuple(row_of(step)) for step in card.steps if step.estimate),
            text_columns=_WORDS,
        ),
        "stopped": stopped_words(card),
    }
