"""The steps since the last good checkpoint, repeated on JAX until a number is lost again."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax import numpy as jnp

from tfdyno.core.doctor.finding import Evidence
from tfdyno.runtime.base.fit_watcher import FitWatcher
from tfdyno.runtime.base.step_hooks import has_own_step
from tfdyno.runtime.nan.locator import locate
from tfdyno.runtime.train.nan import MOST_S, in_update, unlocated
from tfdyno.runtime.train.watch import is_loss
from tfdyno.runtime.train_jax.data import NO_BATCH

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Batch, DataIterator, Logs, Model, Value
    from tfdyno.core.doctor.finding import Finding
    from tfdyno.runtime.checkpoint.files import Position
    from tfdyno.runtime.train.watch import NanLoss

NEVER = 1 << 30
"""Epochs between two validations, where there is to be none."""


class Ended(Exception):  # noqa: N818  (it is what happened)
    """The repeat is over: with what was found, or without."""

    def __init__(self, finding: Finding | None = None) -> None:
        """Keep what was found."""
        super().__init__()
        self.finding = finding


class Repeat:
    """A ``fit`` that goes on from the last good checkpoint, as another session would.

    It takes single steps, without callbacks and validation. Every step is waited for and all
    variables are copied before it, since JAX gives their memory to the step: this is for the steps
    up to the loss that was lost, not for training.
    """

    def __init__(
        self, model: Model, error: NanLoss, good: Position, *, is_stopped: Callable[[], bool]
    ) -> None:
        """Begin nothing.

        Args:
            model: On one device.
            error: What was seen.
            good: Where the checkpoint stands.
            is_stopped: Whether somebody ends the training meanwhile.
        """
        self._model, self._error, self._good = model, error, good
        self._is_stopped = is_stopped
        self._done = good.step_in_epoch
        self._until_s = 0.0

    def run(self, arguments: dict[str, Any], begin_epoch: Callable[[int], None]) -> Finding:
        """Train until a number is lost again, or up to the epoch in which it was.

        Args:
            arguments: Of the ``fit`` that lost it.
            begin_epoch: Restores the checkpoint where its epoch begins, and the steps that it has.

        Returns:
            The finding with the number of the batch, or that the steps did not show it.
        """
        model, first = self._model, self._good.epoch

        def began(logs: Logs = None) -> None:
            model.train_function = self._watching(model.train_function)

        def begin(epoch: int, logs: Logs = None) -> None:
            self._done = self._good.step_in_epoch if epoch == first else 0
            begin_epoch(epoch)

        model.steps_per_execution, model.train_function = 1, None
        given = {
            **arguments,
            "initial_epoch": first,
            "epochs": max(self._error.epoch, first + 1),
            "validation_freq": NEVER,
            "callbacks": [FitWatcher(on_train_begin=began, on_epoch_begin=begin)],
        }
        try:
            model.fit(**given)
        except Ended as ended:
            return ended.finding or unlocated(self._error, repeated=True)
        return unlocated(self._error, repeated=True)

    def _watching(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """Return a train function that raises ``Ended`` at the first step that loses a number."""
        self._until_s = time.monotonic() + MOST_S

        def stepped(state: Value, batches: DataIterator) -> Value:
            if batches is NO_BATCH:  # of an epoch of which all steps are done
                return self._model.get_metrics_result(), state
            if self._is_stopped() or time.monotonic() > self._until_s:
                raise Ended
            batch = next(batches)
            before = jax.tree.map(jnp.copy, state)
            logs, after = run(state, iter([batch]))
            self._done += 1
            lost = [name for name, value in logs.items() if is_loss(name) and not _is_finite(value)]
            bad = self._lost_variable(after)
            if lost or bad:
                self._set(before)
                told = f"{lost[0]} is not finite" if lost else f"{bad} is not finite after the step"
                raise Ended(self._located(batch, bad, told))
            return logs, after

        return stepped

    def _lost_variable(self, state: Value) -> str:
        """Return the path of the first variable that is lost; a mask may hold infinity for ever."""
        trainable, others, of_optimizer, _ = state
        model = self._model
        pairs = [
            *zip(model.trainable_variables, trainable, strict=True),
            *zip(model.optimizer.variables, of_optimizer, strict=True),
        ]
        for variable, value in pairs:
            if not _is_finite(value):
                return str(variable.path)
        for variable, value in zip(model.non_trainable_variables, others, strict=True):
            if _is_float(value) and bool(jnp.isnan(value).any()):
                return str(variable.path)
        return ""

    def _set(self, state: Value) -> None:
        """Give the model the variables that a step began with, as Keras does when it is asked."""
        model = self._model
        groups = (model.trainable_variables, model.non_trainable_variables,
                  model.optimizer.variables, model.metrics_variables)  # fmt: skip
        for variables, values in zip(groups, state, strict=True):
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)
        model._jax_state_synced = True  # what Keras would set are those that the step took

    def _located(self, batch: Batch, bad: str, told: str) -> Finding:
        found = locate(self._model, batch, seen=str(self._error))
        where = Evidence(
            text=f"batch {self._done} of the epoch: {told}",
            source="the steps after the checkpoint, repeated",
        )
        evidence = (*found.evidence, where)
        if found.verdict == "possible" and bad and not has_own_step(self._model):
            return in_update(bad, list(evidence))
        return replace(found, evidence=evidence)


def _is_float(value: Value) -> bool:
    return "float" in str(getattr(value, "dtype", ""))


def _is_finite(value: Value) -> bool:
    if isinstance(value, int | float):
        return bool(np.isfinite(value))
    return not _is_float(value) or bool(jnp.isfinite(value).all())
