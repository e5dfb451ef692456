"""Where estimates find what was measured, and the words in which they say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import find
from tfdyno.catalog.offers import data_dir
from tfdyno.core.choose.recalibration import Subject
from tfdyno.store.recalibration import Anchors
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.choose.recalibration import Anchor, Recalibration
    from tfdyno.core.choose.workload import Trace


def stored() -> Anchors:
    """Return the user's anchors, in their data folder."""
    return Anchors(folder=data_dir())


def subject_of(trace: Trace, *, precision: str, execution: str) -> Subject | None:
    """Return what anchors must be of to apply to the estimates of a trace; None: nothing can be."""
    if execution not in ("xla", "graph"):
        return None
    return Subject(
        title=trace.title,
        parameter_count=trace.parameter_count,
        mode=trace.workload.mode,
        policy=trace.policy,
        strict=precision == "float32",
        execution="xla" if execution == "xla" else "graph",
    )


def anchors_for(trace: Trace) -> tuple[Anchor, ...]:
    """Read the stored anchors of a trace's model; raises ``UsageError`` for a damaged file."""
    key = (trace.title, trace.parameter_count)
    found = stored().read()
    return tuple(one for one in found if (one.subject.title, one.subject.parameter_count) == key)


def notes_on(found: Iterable[tuple[str, Recalibration]]) -> tuple[str, ...]:
    """Return one sentence on the cards whose times rest on a measurement; none where none does.

    Args:
        found: Slug of every estimated card with its recalibration.
    """
    told = [(card, one) for card, one in found if one.anchors]
    if not told:
        return ()
    anchors = {id(anchor): anchor for _, one in told for anchor in one.anchors}.values()
    where = ", ".join(
        say(
            "{card} on {date} ({ratio:.2f} times its estimate)",
            card=find(one.card).name,
            date=one.measured_on,
            ratio=one.factor_ratio,
        )
        for one in anchors
    )
    own = [say("{card} in full", card=find(card).name) for card, one in told if one.own_card]
    others = sorted({one.factor_ratio for _, one in told if not one.own_card})
    if others:
        spread = say(" to ").join(
            f"{value:.2f}" for value in dict.fromkeys((others[0], others[-1]))
        )
        own.append(say("other cards, in part, by a factor of {spread}", spread=spread))
    return (
        say(
            "Times rest on your own measurement: {where}; it moved {own}.",
            where=where,
            own=say(" and ").join(own),
        ),
    )
