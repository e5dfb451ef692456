"""After a loss or weight that is no number: the last good checkpoint, and where it was lost."""

from __future__ import annotations

import dataclasses
import itertools
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from tfdyno.core.doctor.finding import Evidence
from tfdyno.runtime.checkpoint.files import list_checkpoints, read_arrays
from tfdyno.runtime.nan import words
from tfdyno.runtime.nan.locator import locate
from tfdyno.runtime.nan.look import is_finite, value_of
from tfdyno.runtime.train.watch import is_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tfdyno.core.base.untyped import Model, Value, Variable
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


def hunt(
    model: Model,
    batches: Iterable[Any],
    step: Callable[[Any], Any],
    *,
    seen: str = "",
    first: int = 1,
) -> Finding | None:
    """Repeat the steps after a checkpoint, and locate what the first bad one shows.

    Every step is waited for, and all variables are copied before it: this is for the steps
    between a checkpoint and the loss that was lost, not for training.

    Args:
        model: With the weights, optimizer and seeds of the checkpoint. It is left as it was before
            the bad step, or trained by all batches where there is none.
        batches: Those that came after the checkpoint, in their order.
        step: Trains on one batch and returns the logs: ``model.train_function(iter([batch]))``
            of Keras' own train function.
        seen: What showed the loss, for the evidence.
        first: Number of the first batch in its epoch, from 1.

    Returns:
        The finding with the number of the batch; None where all losses and weights stay finite.
    """
    for number, batch in enumerate(batches, first):
        variables = _variables(model)
        before = [tf.identity(value_of(variable)) for variable in variables]
        model.reset_metrics()
        logs = step(batch)
        lost = [name for name, value in logs.items() if is_loss(name) and not _is_number(value)]
        bad = [v for v in variables if not is_finite(_floats(v))]
        if not (lost or bad):
            continue
        for variable, value in zip(variables, before, strict=True):
            variable.assign(value)
        told = f"{lost[0]} is not finite" if lost else f"{bad[0].path} is not finite after the step"
        found = locate(model, batch, seen=seen)
        where = Evidence(
            text=f"batch {number} of the epoch: {told}",
            source="the steps after the checkpoint, repeated",
        )
        if found.verdict == "possible" and bad:
            return in_update(bad[0].path, [*found.evidence, where])
        return dataclasses.replace(found, evidence=(*found.evidence, where))
    return None


def in_update(path: str, evidence: list[Evidence]) -> Finding:
    """Return the finding where gradients are finite, and a variable is not after the update."""
    return words.finding(
        f"The gradients are finite, the update is not: {path} is lost in it.",
        "The step of the optimizer exceeds the largest number: the learning rate is too high, or "
        "its epsilon is 0.",
        [(each.text, each.source) for each in evidence],
        [words.DIVERGED, words.OPTIMIZER_EPSILON],
    )


def _variables(model: Model) -> list[Any]:
    optimizer = getattr(model, "optimizer", None)
    return [*model.variables, *getattr(optimizer, "variables", ())]


def _floats(variable: Variable) -> Value:
    value = value_of(variable)
    return value if value.dtype.is_floating else None


def _is_number(value: Value) -> bool:
    return bool(np.all(np.isfinite(np.asarray(value))))
