"""A training on TensorFlow: Keras' own ``fit`` with the recipe's functions, and what is its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.runtime.base.replicas import replicas
from tfdyno.runtime.checkpoint.random_states import drawn_since, random_state, restore_random_state
from tfdyno.runtime.recipe.apply import verify
from tfdyno.runtime.recipe.build import samples_of
from tfdyno.runtime.recipe.functions import functions_of
from tfdyno.runtime.recipe.strategy import is_chief, worker_count, worker_rank
from tfdyno.runtime.train.engine import Engine
from tfdyno.runtime.train.epochs import Hooks, epochs_of
from tfdyno.runtime.train.nan import keep_good, repeated
from tfdyno.runtime.train.outcome import applied, updates_of
from tfdyno.runtime.train.ranks import WorkerGroup
from tfdyno.runtime.train.session import Cursor, TrainSession
from tfdyno.runtime.train.tensorboard import TrainBoard

if TYPE_CHECKING:
    import contextlib

    from tfdyno.core.base.untyped import Dataset, Logs, Model, Value
    from tfdyno.core.doctor.finding import Finding
    from tfdyno.core.train.training import TrainOutcome
    from tfdyno.runtime.checkpoint.state import State
    from tfdyno.runtime.train.watch import NanLoss, TrainPlan


def train(model: Model, arguments: dict[str, Any], plan: TrainPlan) -> TrainOutcome:
    """Train a compiled model that was built in the recipe's strategy.

    Args:
        model: A compiled Keras model.
        arguments: Of ``fit``, by name; batch sizes are those over all replicas.
        plan: What is asked.

    Raises:
        UsageError: The model, its data or the recipe do not go together.
        ToolError: A checkpoint cannot be written, or TensorFlow did not take a setting.
    """
    return _Session(model, arguments, plan).run()


class _Session(TrainSession):
    def __init__(self, model: Model, arguments: dict[str, Any], plan: TrainPlan) -> None:
        super().__init__(
            model,
            arguments,
            plan,
            rank=worker_rank(),
            count=worker_count(),
            writes=is_chief(),
        )
        self.engine = Engine(model, plan.recipe)
        self.hooks = Hooks(
            made=self._made,
            change=self.engine.change,
            change_test=self.engine.change_test,
            begun=self._begun,
            whole=self.engine.whole,
            progress=plan.progress,
            drawn_seed=plan.recipe.seed if plan.settings.reshuffle else None,
            notes=self.notes,
            place=self.place,
        )
        self.board = TrainBoard(plan.settings)
        self.workers: WorkerGroup | None = None
        self._before_validation: list[tuple[Any, Any]] = []
        """Metrics of the training while those of the validation are computed."""
        self._random: dict[str, Any] = {}
        """The random generators before anything of the data was read."""
        self._is_verified = False
        self._asks_each_step = self.consensus.is_joint or self.settings.checkpoint_steps > 0

    def _enter(self, stack: contextlib.ExitStack) -> None:
        if self.found:
            position = self.found.position
            self.hooks.start = Cursor(
                epoch=position.epoch,
                step=position.step_in_epoch,
                batch_count=position.data.get("batch_count"),
            )
        stack.callback(self.board.close)
        self.engine.enter(stack)
        stack.enter_context(epochs_of(self.hooks))
        functions = functions_of(
            self.model,
            lambda: self.engine.composed,
            is_composed=self.engine.is_composed,
            around_train=self._around,
            after_train=self._ran,
            before_test=self._tests,
        )
        stack.enter_context(functions)

    def _around(self, run: Value) -> Value:
        return self.board.watching(self.model, run, lambda: self.step)

    def _state(self) -> State:
        return self.engine.state()

    def _iterations(self) -> int:
        return self.engine.iterations()

    def _own_of(self, place: Cursor) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"batch_count": place.batch_count}, {}

    # Moments of the data

    def _made(self, dataset: Dataset) -> None:
        """Build what is composed or restored, as the data are known, before the first step."""
        size = samples_of(dataset.element_spec, self.arguments)
        early = self.checkpoints is not None or bool(self.settings.first_weights)
        self.engine.build(dataset.element_spec, batch_size=size, early=early)
        self.samples_per_step, self.compiled = size, self.engine.compiled
        if self.consensus.is_joint and self.engine.composed:
            self.workers = WorkerGroup(self.model, self.engine.composed)
            self.consensus.exchange_by(self.workers.table)
        if self.settings.first_weights:
            begin_with(self.model, Path(self.settings.first_weights))
        if self.found:
            self._random = random_state()
            self._restore(self.found)

    def _begun(self) -> None:
        """Set what an earlier session left, after Keras has reset the metrics and drawn."""
        if self.found:
            if self.found.position.step_in_epoch:
                self._restore(self.found)
            # Data that draw from Python's generators stand where they stood, and read ahead.
            leave = drawn_since(self._random) if self.hooks.reads_again else frozenset()
            restore_random_state(self.found.random, leave=leave)
        elif self.checkpoints:
            self.save()  # the beginning, for a run that ends before its first checkpoint

    # Steps

    def _ran(self, logs: Logs) -> None:
        """The train function has returned."""
        done = self.hooks.calling
        steps = done - self.place.step
        if self.workers:
            self.workers.steps(steps)
        if not self._is_verified:
            self._is_verified = True
            verify(self.plan.recipe)
        if self._stepped(done, steps, logs) or self.stop or self._asks_each_step:
            self._between_steps()

    def _tests(self) -> None:
        """Stop before the test function runs, with the state from before validation."""
        if self.stop and self._before_validation and not self.consensus.is_joint:
            for variable, value in self._before_validation:
                variable.assign(value)
            if self.checkpoints:
                self._keep(wait=True)
            self._leave_fit()

    # Callbacks

    def built(self, logs: Logs = None) -> None:
        """All weights are there, and the user's callbacks have not begun."""
        self.board.begin(self.plan.recipe)

    def epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """An epoch is to start; the user's callbacks do not know yet."""
        self.place.epoch, self.place.step = epoch, 0

    def begin_validation(self, logs: Logs = None) -> None:
        """Validation is to start: keep the metrics of the training for a stop in it."""
        super().begin_validation()
        if self.checkpoints and not self.consensus.is_joint:
            self._before_validation = [(v, v.numpy()) for v in self.model.metrics_variables]

    def _epoch_ended(self, epoch: int, logs: Logs) -> None:
        self._before_validation = []
        if self.workers:
            self.workers.epoch_end(epoch + 1)
        self.board.epoch_end(epoch, logs, self.model, self.plan.watch.samples_per_s)

    # The end

    def _lost(self, error: NanLoss) -> Finding:
        """Go back to the last good checkpoint, and look for where the number was lost."""
        if self.consensus.is_joint or self.engine.is_scheduled:  # repeating needs all processes
            return super()._lost(error)
        good = keep_good(self.checkpoints) if self.checkpoints else None
        if good and self.checkpoints:
            self.checkpoints.restore(self.engine.state(), good)
        self.plan.progress("looking for where the number was lost")
        step = self.engine.one_batch()
        found = repeated(self.model, self.hooks.dataset, step, error, good)
        if good and self.checkpoints:
            self.checkpoints.restore(self.engine.state(), good)
            self.notes.append(f"The last good checkpoint is {good.marker}.")
        return found

    def _outcome(self, stopped: str, findings: tuple[Finding, ...]) -> TrainOutcome:
        of_workers = self.workers.notes if self.workers else []
        self.notes = [*self.engine.notes, *self.notes, *of_workers]
        taken = self.iterations - self.iterations_before
        updates, skipped = updates_of(self.model, taken, self.step, self.engine.accumulation)
        return replace(
            super()._outcome(stopped, findings),
            updates=updates,
            skipped_updates=skipped,
            replica_count=replicas(self.model),
            applied=applied(self.model, self.plan.recipe, compiled=self.compiled),
        )


def begin_with(model: Model, file: Path) -> bool:
    """Set the weights that a file keeps, in the types of the model; without the file, make it.

    So two trainings begin alike, which a seed does not do: 64 bits are drawn otherwise than 32.
    Counters and states of random numbers stay. A model of other shapes begins as it is.

    Args:
        model: Built.
        file: ``.npz``; its folder exists.

    Returns:
        Whether the model begins with what the file has.
    """
    import keras
    import numpy as np

    own = [one for one in model.weights if keras.backend.is_float_dtype(one.dtype)]
    if not file.exists():
        if is_chief():
            np.savez(file, *(np.asarray(one.numpy(), "float64") for one in own))
        return True
    with np.load(file, allow_pickle=False) as kept:
        values = [kept[name] for name in kept.files]
    is_alike = [one.shape for one in values] == [tuple(one.shape) for one in own]
    if is_alike:
        for one, value in zip(own, values, strict=True):
            one.assign(value.astype("float32") if one.dtype == "bfloat16" else value)
    return is_alike
