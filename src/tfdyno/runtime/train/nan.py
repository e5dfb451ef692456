"""After a loss or weight that is no number: the last good checkpoint, and where it was lost."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.runtime.checkpoint.files import list_checkpoints, read_arrays
from tfdyno.runtime.nan import words
from tfdyno.runtime.nan.locator import locate
from tfdyno.runtime.train.nan_hunt import hunt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tfdyno.core.base.untyped import Model
    from tfdyno.core.doctor.finding import Finding
    from tfdyno.runtime.checkpoint.checkpoints import Checkpoints
    from tfdyno.runtime.checkpoint.files import Checkpoint
    from tfdyno.runtime.train.watch import NanLoss

MOST_S = 120.0
"""So long steps are repeated to find the one that loses the number."""


def keep_good(checkpoints: Checkpoints) -> Checkpoint | None:
    """Pin the newest checkpoint whose numbers are all finite; newer ones are removed.

    Raises:
        ToolError: A file cannot be read or removed.
    """
    checkpoints.wait()
    for checkpoint in list_checkpoints(checkpoints.folder)[0]:
        if _is_finite(checkpoint):
            checkpoints.pin(checkpoint)
            return checkpoint
        checkpoint.marker.unlink(missing_ok=True)  # without it the data are no checkpoint
        checkpoint.data.unlink(missing_ok=True)
    return None


def _is_finite(checkpoint: Checkpoint) -> bool:
    return all(
        np.isfinite(np.asarray(value, np.float32)).all()
        for entry, value in read_arrays(checkpoint)
        if "float" in entry.dtype
    )


def repeated(
    model: Model,
    dataset: Iterable[Any],
    step: Callable[[Any], Any],
    error: NanLoss,
    good: Checkpoint | None,
) -> Finding:
    """Train on from the last good checkpoint until the number is lost again, and look there.

    Args:
        model: With the weights of that checkpoint; without one as the loss left it.
        dataset: Batches of an epoch; shuffled anew where the data are.
        step: Trains on one batch and returns the logs.
        error: What was seen.
        good: The checkpoint; None: there is none, and the first batch is looked at.
    """
    seen = str(error)
    if good is None:
        return locate(model, next(iter(dataset)), seen=seen)
    done = good.position.step_in_epoch
    batches = _in_time(itertools.islice(iter(dataset), done, None))
    return hunt(model, batches, step, seen=seen, first=done + 1) or unlocated(error, repeated=True)


def unlocated(error: NanLoss, *, repeated: bool = False) -> Finding:
    """Return what can be said where the steps cannot be repeated, or end well the second time.

    Args:
        error: What was seen.
        repeated: Whether they were.
    """
    tried = "repeating the steps did not" if repeated else "the steps cannot be repeated to"
    return words.finding(
        f"{error}, and {tried} show where it began.",
        "The weights or the activations grew beyond what the precision can hold, or a value in the "
        "data is not finite.",
        [(str(error), error.seen_in)],
        [words.DIVERGED] if repeated else [words.ALONE, words.DIVERGED],
        verdict="likely",
    )


def _in_time(batches: Iterator[Any]) -> Iterator[Any]:
    until = time.monotonic() + MOST_S
    for batch in batches:
        if time.monotonic() > until:
            return
        yield batch
