"""Steps back from a compile that fails inside XLA, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.recipe.retreat import CRASHED
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.recipe.retreat import Retreat


def retreats_words(retreats: Sequence[Retreat]) -> str:
    """Return what ``told_of`` writes in a record, in the language of the answer."""
    if not retreats:
        return ""
    causes = say(", then ").join(dict.fromkeys(cause_words(one).rstrip(".") for one in retreats))
    before = say(" and ").join(say(one.words) for one in retreats[:-1])
    return say(
        "XLA failed to compile it: {causes}; it ran {way}{failed}.",
        causes=causes,
        way=way_words(retreats[-1]),
        failed=say(", as it failed {before}, too", before=before) if before else "",
    )


def step_line(subject: str, step: Retreat, *, is_served: bool = False) -> str:
    """Return what is told when a step back is taken: the fault and what follows, in one line.

    Args:
        subject: What is compiled.
        step: That is taken.
        is_served: Whether it is a server that is started again.
    """
    return say(
        "XLA failed to compile {subject}: {cause}; it is started again {way}."
        if is_served
        else "XLA failed to compile {subject}: {cause}; it is run again {way}.",
        subject=subject,
        cause=cause_words(step).rstrip("."),
        way=way_words(step),
    )


def cause_words(one: Retreat) -> str:
    """Return the fault with its upstream threads, or what the compiler said of one not known."""
    if not one.title:
        return one.said or say(CRASHED)
    if not one.references:
        return say(one.title)
    threads = ", ".join(one.references)
    return say("{title} ({threads})", title=say(one.title), threads=threads)


def way_words(one: Retreat) -> str:
    """Return what is left out, with its flags."""
    if not one.flags:
        return say(one.words)
    return say("{words} (XLA_FLAGS {flags})", words=say(one.words), flags=" ".join(one.flags))
