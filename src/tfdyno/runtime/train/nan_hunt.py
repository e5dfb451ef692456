"""Trains on from a checkpoint until a number is lost, and says with which batch and where."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from tfdyno.core.doctor.finding import Evidence
from tfdyno.runtime.nan import words
from tfdyno.runtime.nan.locator import locate
from tfdyno.runtime.nan.look import is_finite, value_of
from tfdyno.runtime.train.watch import is_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tfdyno.core.base.untyped import Model, Value, Variable
    from tfdyno.core.doctor.finding import Finding


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
            return _in_update(bad[0].path, [*found.evidence, where])
        return dataclasses.replace(found, evidence=(*found.evidence, where))
    return None


def _in_update(path: str, evidence: list[Evidence]) -> Finding:
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
