"""TensorFlow and JAX side by side as terminal text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.view.base.documents import trace_document
from tfdyno.view.base.text import WIDTH, paint, table, wrapped
from tfdyno.view.choose.estimate_text import CAUSES, FITS
from tfdyno.words.base.amounts import about_step, gib, gib_range
from tfdyno.words.base.language import joined, say
from tfdyno.words.base.names import named
from tfdyno.words.choose.advice import brief, fit_state
from tfdyno.words.choose.backends import card_words, first_step_words, way_words, why_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.backends import BackendsAnswer, BackendsOnCard, BackendStep


def backends_text(found: BackendsAnswer, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return the answer for each card, its ways in a table, and the command that proves it.

    Args:
        found: What was asked.
        width: Columns of the screen.
        colour: Whether to print bold and dim.
    """
    blocks = [text for card in found.cards for text in _card(found, card, width, colour)]
    blocks.append("\n".join(wrapped(note, width=width) for note in found.notes))
    blocks.append(wrapped(assumed_words(found), width=width))
    blocks.append(_proof(found, width))
    return "\n\n".join(filter(None, dict.fromkeys(blocks)))


def backends_document(found: BackendsAnswer) -> dict[str, Any]:
    """Write ``{"backends": […], "command": …}``: each card with its ways and their estimates."""
    cards = []
    for card in found.cards:
        told = to_builtins(card)
        for step, given in zip(card.steps, told["steps"], strict=True):
            given["why_not"] = why_words(step) if step.obstacle else ""
        cards.append({**told, "answer": card_words(found, card)})
    return {
        "backends": cards,
        "command": found.command,
        "trace": {**trace_document(found.trace), "batch_source": found.batch_source},
        "notes": list(found.notes),
    }


def headers() -> list[str]:
    """Return what stands above the cells of ``row_of`` but for the first."""
    return [
        say("step"), say("range"), "GiB", say("range"), say("fits"), say("first step compiles"),
        say("held by"),
    ]  # fmt: skip


def row_of(step: BackendStep) -> list[str]:
    """Return the cells of a way that has an estimate."""
    one = step.estimate
    assert one
    best, bounds = about_step(one.step_s)
    return [
        way_words(step),
        best,
        bounds,
        gib(one.device_memory_bytes.best),
        gib_range(one.device_memory_bytes),
        say(FITS[fit_state(one)]),
        first_step_words(step) or say("not known"),
        say(CAUSES[one.bound_by]) if one.bound_by in CAUSES else one.bound_by,
    ]


def stopped_words(card: BackendsOnCard) -> list[str]:
    """Return a sentence for each way that cannot run."""
    return [
        say("{way}: {why}.", way=way_words(step), why=why_words(step))
        for step in card.steps
        if step.obstacle
    ]


def _card(found: BackendsAnswer, card: BackendsOnCard, width: int, colour: bool) -> Sequence[str]:
    rows = [row_of(step) for step in card.steps if step.estimate]
    head = paint(wrapped(card_words(found, card), width=width), "bold", colour=colour)
    names = [brief(card.gpu_name), *headers()]
    cells = table(names, rows, align="<>>>><><", width=width, spare=(4, 7, 6), colour=colour)
    return head, "\n".join([cells, *(wrapped(line, width=width) for line in stopped_words(card))])


def assumed_words(found: BackendsAnswer) -> str:
    """Return what the numbers rest on, and what of the first step is not known."""
    estimates = [one.estimate for card in found.cards for one in card.steps if one.estimate]
    software = dict.fromkeys(one.software for one in estimates if one.software)
    told = say(
        "Assumed: {said}.",
        said=say(", ").join([
            estimates[0].precision, *software,
            say("batch {sizes} ({source})", sizes=f"{found.batch_size:,}",
                source=named(found.batch_source)),
        ]),
    )  # fmt: skip
    return joined((
        told, say("Ranges hold about nine times in ten."),
        say("How long the first step takes besides compiling is not known."),
    ))  # fmt: skip


def _proof(found: BackendsAnswer, width: int) -> str:
    if found.trace.workload.kind == "preset":
        said = say("Nothing of this is measured: a preset brings no weights. A script can be.")
        return wrapped(said, width=width)
    if not found.command:
        return ""
    said = say("Nothing of this is measured. On a machine with the card, this proves it:")
    return f"{wrapped(said, width=width)}\n  {found.command}"
