"""Whether the cards of a run have room for it: one sentence before minutes of work, or a wait."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError
from tfdyno.jobs.holders import words
from tfdyno.probe.holders.cards import EXCLUSIVE, PROHIBITED, CardsInspection, HeldCard, look
from tfdyno.words.base.holders import holder_words
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.base.interval import Interval

NEARLY_FULL_RATIO = 0.05
"""Less of a card's memory than this is no room for TensorFlow's own context and libraries."""
WAIT_STEP_S = 2.0
"""Between two looks at who holds the cards."""
REMEDY = "end them, wait for them with --wait-free, or choose another card with --set " \
    "visible_devices=N"  # fmt: skip


def check_room(visible: str | None) -> None:
    """Refuse cards that no run could use; a machine without cards passes.

    Args:
        visible: ``CUDA_VISIBLE_DEVICES`` of the run; None: all cards.

    Raises:
        ToolError: As ``refuse``.
    """
    refuse(look(visible).cards)


def refuse(held: Sequence[HeldCard]) -> None:
    """Refuse cards that no run could use.

    Raises:
        ToolError: Less than ``NEARLY_FULL_RATIO`` of a card's memory is free, or it takes no other
            process; names who holds it.
    """
    for card in held:
        if card.mode == PROHIBITED:
            raise ToolError(f"{card.place} takes no process", why="its compute mode is prohibited",
                            remedy=f"set it with: nvidia-smi -i {card.index} -c 0")  # fmt: skip
        if card.mode == EXCLUSIVE and card.holders:
            why = f"it is in exclusive mode, and {words.names(card.holders)} computes on it"
            raise ToolError(f"{card.place} takes one process only", why=why, remedy=REMEDY)
        if is_full(card):
            raise ToolError(words.free_words(card), why=words.holder_words(card), remedy=REMEDY)


def is_full(card: HeldCard) -> bool:
    """Return whether there is no memory even for TensorFlow itself."""
    return card.free_bytes is not None and card.free_bytes < NEARLY_FULL_RATIO * card.total_bytes


def is_free(held: Sequence[HeldCard], need: Interval | None) -> bool:
    """Return whether a run can start: nobody is there, or what it surely takes is free.

    Args:
        held: The cards of the run.
        need: What it takes of each; None: not known, so nobody else may be there.
    """
    for card in held:
        if card.mode == EXCLUSIVE and card.holders:
            return False
        if need and card.free_bytes is not None and not is_full(card):
            if card.free_bytes < need.high:
                return False
        elif card.is_shared:
            return False
    return True


def wait_for_room(
    visible: str | None,
    *,
    need: Callable[[], Interval | None] = lambda: None,
    progress: Callable[[str], None],
) -> CardsInspection:
    """Wait until the cards of a run are free for it, however long that takes.

    Args:
        visible: ``CUDA_VISIBLE_DEVICES`` of the run; None: all cards.
        need: Asked once, where others are there: what the run takes of each card.
        progress: Called with who is waited for, whenever that changes.
    """
    found, wanted, told = look(visible), None, ""
    if any(one.is_shared for one in found.cards):
        wanted = need()
    while not is_free(found.cards, wanted):
        shared = (words.sentence(one) for one in found.cards if one.is_shared)
        said = say("; ").join(map(holder_words, shared))
        if said != told:
            progress(say("waiting: {who}", who=said))
            told = said
        time.sleep(WAIT_STEP_S)
        found = look(visible)
    return found
