"""Whether a pipeline gives the order of a later epoch without the elements of the earlier ones.

A resumed run makes the iterators of the finished epochs and takes nothing from them. That is enough
where all that differs between epochs is decided when an iterator is made: ``shuffle`` takes its
next seed then, and random operations inside of a function begin anew with each iterator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.runtime.workload.input_stages import (
    PLAIN,
    SOURCES,
    effects,
    kind,
    order_is_free,
    reshuffles,
    times,
    title,
    walk,
)

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Dataset

_LATER = {"shuffle", "repeat", "concatenate", "cache"}
"""Stages that make an iterator of (one of) their inputs only when they need its elements."""
_KNOWN = SOURCES | PLAIN | {"shuffle", "random", "repeat"}


def why_full_replay(dataset: Dataset) -> str:
    """Return why the earlier epochs have to be run through, with the stage; empty: they need not.

    Args:
        dataset: A ``tf.data.Dataset`` before it is distributed.
    """
    for stage in walk(dataset):
        reason = _own_reason(stage) or _reason_below(stage)
        if reason:
            return f"{title(stage)} {reason}"
    return ""


def _own_reason(stage: Dataset) -> str:
    if kind(stage) not in _KNOWN:
        return "cannot be looked into"
    found = effects(stage)
    if found.python:
        return "runs Python code, which may keep a state of its own"
    if found.keeps:
        return f"keeps a state from epoch to epoch ({found.keeps})"
    if found.captures:
        return f"uses {found.captures}"
    return ""


def _reason_below(stage: Dataset) -> str:
    if kind(stage) not in _LATER or (kind(stage) == "repeat" and times(stage) == 1):
        return ""
    below = stage._inputs()[1:] if kind(stage) == "concatenate" else stage._inputs()
    for each in (found for dataset in below for found in walk(dataset)):
        if reshuffles(each):
            return f"starts the {title(each)} before it only when it needs elements"
    return ""


def not_repeatable(dataset: Dataset) -> tuple[str, ...]:
    """Return sentences on stages whose elements a seed does not repeat, whatever is replayed."""
    free = dataset.options().deterministic is False
    found = []
    for stage in walk(dataset):
        if "Parallel" in type(stage).__name__ and effects(stage).draws:
            found.append(
                f"{title(stage)} draws random numbers on several threads: a seed does not repeat "
                "them; use the tf.random.stateless_ functions."
            )
        elif order_is_free(stage, free=free):
            found.append(
                f"{title(stage)} gives its elements in the order they get ready "
                "(deterministic=False): a seed does not repeat it."
            )
    return tuple(found)
