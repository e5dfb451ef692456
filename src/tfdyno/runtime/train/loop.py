"""A training: Keras' own ``fit`` with the recipe's functions, checkpoints and a watch."""

from __future__ import annotations

import contextlib
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.train.training import CHECKPOINTS, TrainOutcome
from tfdyno.process.stop_asked import asked_to_stop
from tfdyno.runtime.base.replicas import replicas
from tfdyno.runtime.checkpoint.callbacks import callback_state, restore_callbacks
from tfdyno.runtime.checkpoint.checkpoints import Checkpoints
from tfdyno.runtime.checkpoint.files import Position
from tfdyno.runtime.checkpoint.random_states import drawn_since, random_state, restore_random_state
from tfdyno.runtime.recipe.apply import verify
from tfdyno.runtime.recipe.build import samples_of
from tfdyno.runtime.recipe.functions import First, Last, functions_of
from tfdyno.runtime.recipe.strategy import is_chief, worker_count, worker_rank
from tfdyno.runtime.train.board import TrainBoard
from tfdyno.runtime.train.consensus import Consensus
from tfdyno.runtime.train.engine import Engine
from tfdyno.runtime.train.epochs import Cursor, Hooks, epochs_of
from tfdyno.runtime.train.finite_weights import FiniteWeights
from tfdyno.runtime.train.first_weights import begin_with
from tfdyno.runtime.train.nan import keep_good, repeated, unlocated
from tfdyno.runtime.train.outcome import Counts, Session, outcome_of
from tfdyno.runtime.train.watch import NanLoss, RunAbout, TrainPlan
from tfdyno.runtime.train.worker_group import WorkerGroup

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Dataset, Logs, Model, Value
    from tfdyno.core.doctor.finding import Finding
    from tfdyno.runtime.checkpoint.files import Checkpoint

MEETING = ".meeting"
"""In the folder of a run."""


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
    return _Training(model, arguments, plan).run()


class _Stopped(BaseException):
    """Leaves ``fit`` after the checkpoint of a stop; no ``except Exception`` of the user does."""


class _Training:
    """One session of a training; ``fit`` calls back into it."""

    def __init__(self, model: Model, arguments: dict[str, Any], plan: TrainPlan) -> None:
        self.model, self.plan, self.settings = model, plan, plan.settings
        self.arguments = {**arguments, "verbose": 0}  # Keras' bar would be drawn into ours
        self.session = Session()
        self.engine = Engine(model, plan.recipe)
        self.hooks = Hooks(
            made=self._made,
            change=self.engine.change,
            change_test=self.engine.change_test,
            begun=self._begun,
            whole=self.engine.whole,
            progress=plan.progress,
            drawn_seed=plan.recipe.seed if plan.settings.reshuffle else None,
            notes=self.session.notes,
        )
        self.counts = Counts()
        self.board = TrainBoard(plan.settings)
        self.findings: tuple[Finding, ...] = ()
        self.checkpoints: Checkpoints | None = None
        self.found: Checkpoint | None = None
        self.extra: dict[str, Any] = {}
        self.logs: dict[str, Any] = {}
        self.workers: WorkerGroup | None = None
        given = arguments.get("callbacks") or []
        self.own = list(given) if isinstance(given, list | tuple) else [given]
        folder = Path(self.settings.output) if self.settings.output else None
        self.meeting = Consensus(
            folder / MEETING if folder else None, rank=worker_rank(), count=worker_count()
        )
        self.weights = FiniteWeights(model, self.meeting)
        self._asks_each_step = self.meeting.is_joint or self.settings.checkpoint_steps > 0

    def run(self) -> TrainOutcome:
        """Train until the end, a stop, or a loss or a weight that is not a number."""
        with contextlib.ExitStack() as stack:
            if self.settings.output:
                self._open(stack, Path(self.settings.output) / CHECKPOINTS)
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
            stack.enter_context(asked_to_stop(self._stop))
            stopped = self._fit()
            self.counts.compiled = self.engine.compiled
            self.counts.iterations = self.engine.iterations()
            if self.counts.nan:
                self.findings = (self._lost(self.counts.nan),)
            if self.checkpoints:
                self.checkpoints.wait()
                self.session.notes += self.checkpoints.notes
            if self.workers:
                self.session.notes += self.workers.notes
        outcome = self._outcome(stopped)
        self.meeting.leave()
        return outcome

    @property
    def _epochs(self) -> int:
        """That the training is to have, unless a callback ends it before."""
        return int(self.arguments.get("epochs") or 1)

    def _around(self, run: Value) -> Value:
        return self.board.watching(self.model, run, lambda: self.counts.step)

    def _open(self, stack: contextlib.ExitStack, folder: Path) -> None:
        self.checkpoints = stack.enter_context(
            Checkpoints(
                folder,
                keep=self.settings.keep,
                every_steps=self.settings.checkpoint_steps,
                every_s=self.settings.checkpoint_s,
                writes=is_chief(),
            )
        )
        self.found = self.checkpoints.latest() if self.settings.resume else None
        if self.found:
            position = self.found.position
            self.hooks.start = Cursor(
                epoch=position.epoch,
                step=position.step_in_epoch,
                batch_count=position.data.get("batch_count"),
            )
            self.arguments["initial_epoch"] = position.epoch
            if self._epochs <= position.data.get("ended_of", 0):
                self.arguments["epochs"] = position.epoch  # only its end is missing
            self.counts.step = self.found.step
            self.session.history = {name: list(v) for name, v in self.found.history.items()}

    def _fit(self) -> str:
        """Call Keras; returns why it ended early, or nothing."""
        callbacks = [First(self), *self.own, Last(self)]
        try:
            self.model.fit(**{**self.arguments, "callbacks": callbacks})
        except _Stopped:
            return self.session.stop
        except NanLoss as error:
            self.counts.nan = error
            return error.reason
        finally:
            self.plan.watch.end()
        return ""

    # Moments of the data

    def _made(self, dataset: Dataset) -> None:
        """The data are known: build what is composed or restored before the first step."""
        size = samples_of(dataset.element_spec, self.arguments)
        self.counts.samples_per_step = size
        early = self.checkpoints is not None or bool(self.settings.first_weights)
        self.engine.build(dataset.element_spec, batch_size=size, early=early)
        if self.meeting.is_joint and self.engine.composed:
            self.workers = WorkerGroup(self.model, self.engine.composed)
            self.meeting.exchange_by(self.workers.table)
        if self.settings.first_weights:
            begin_with(self.model, Path(self.settings.first_weights))
        if self.found and self.checkpoints:
            self.session.random = random_state()
            state = self.engine.state()
            # What is read again draws as it did then.
            self.extra = self.checkpoints.restore(state, self.found, random=False) or {}

    def _begun(self) -> None:
        """Keras has reset the metrics and drawn what it draws: set what an earlier session left."""
        if self.found and self.checkpoints:
            if self.found.position.step_in_epoch:
                self.checkpoints.restore(self.engine.state(), self.found, random=False)
            # Data that draw from Python's generators stand where they stood, and read ahead.
            leave = drawn_since(self.session.random) if self.hooks.reads_again else frozenset()
            restore_random_state(self.found.random, leave=leave)
        elif self.checkpoints:
            self.save()  # the beginning, for a run that ends before its first checkpoint

    # Steps

    def _ran(self, logs: Logs) -> None:
        """The train function has returned: counting, watching, checkpoints, stopping."""
        session, place, done = self.session, self.hooks.place, self.hooks.calling
        if self.workers:
            self.workers.steps(done - place.step)
        self.counts.step += done - place.step
        place.step, self.logs = done, logs
        if not session.is_verified:
            session.is_verified = True
            verify(self.plan.recipe)
        looked = False
        try:
            looked = self.plan.watch.steps(done, logs)
        except NanLoss as error:
            if not self.meeting.is_joint:
                raise
            self.counts.nan = self.counts.nan or error
        if looked or session.stop or self._asks_each_step:
            self._after_steps()

    def _after_steps(self) -> None:
        """Do what is due between two steps: asked by the clock a few times a second."""
        session, checkpoints, step = self.session, self.checkpoints, self.counts.step
        due = checkpoints.due(step, time.monotonic()) if checkpoints else False
        agreed = self.meeting.agree(
            nan=bool(self.counts.nan), stop=bool(session.stop), save=due and self.meeting.leads
        )
        if "nan" in agreed:
            place = self.hooks.place
            other = NanLoss("loss", math.nan, epoch=place.epoch + 1, step=place.step)
            raise self.counts.nan or other
        stops = "stop" in agreed
        if checkpoints and (stops or "save" in agreed or checkpoints.due_by_steps(step)):
            self.weights.check(self.hooks.place.epoch, self.hooks.place.step, self.logs)
            self.save(wait=stops)
        if stops:
            session.stop = session.stop or "SIGTERM"
            raise _Stopped

    def _tests(self) -> None:
        """The test function is to be called: a stop keeps the state from before validation."""
        session = self.session
        if session.stop and session.before_validation and not self.meeting.is_joint:
            for variable, value in session.before_validation:
                variable.assign(value)
            if self.checkpoints:
                self.weights.check(self.hooks.place.epoch, self.hooks.place.step, self.logs)
                self.save(wait=True)
            raise _Stopped

    def save(self, *, wait: bool = False, place: Cursor | None = None) -> None:
        """Keep all that the next session needs to go on as if there had been no end.

        Args:
            wait: Return when it is on the disk.
            place: The beginning of the next epoch; None: where training stands in this one.
        """
        assert self.checkpoints
        ended_of = self._epochs if place and self.model.stop_training else 0
        place = place or self.hooks.place
        states, notes = callback_state(self.own)
        self.session.notes += [note for note in notes if note not in self.session.notes]
        began = time.perf_counter()
        self.checkpoints.save(
            self.counts.step,
            self.engine.state(),
            Position(
                epoch=place.epoch,
                step_in_epoch=place.step,
                seed=self.plan.recipe.seed,
                data={"batch_count": place.batch_count, "ended_of": ended_of},
            ),
            {"callbacks": states, "iterations_before": self.counts.iterations_before},
            wait=wait,
            history=self.session.history,
        )
        if self.hooks.place.step:  # not the one before the first step
            self.plan.watch.saved(time.perf_counter() - began)

    def _stop(self, signal_name: str) -> None:
        if self.session.stop and signal_name == "Ctrl-C":
            raise KeyboardInterrupt  # whoever asks a second time does not want to wait
        self.session.stop = signal_name

    # Callbacks

    def epoch_begin(self, epoch: int) -> None:
        """An epoch is to start; the user's callbacks do not know yet."""
        self.hooks.place.epoch, self.hooks.place.step = epoch, 0

    def train_begin(self) -> None:
        """Keras' callbacks have begun: the first number of updates, and what they knew before."""
        iterations = self.engine.iterations()
        self.counts.iterations_before = int(self.extra.get("iterations_before", iterations))
        self.counts.epochs = int(self.arguments.get("initial_epoch") or 0)
        if self.found:
            self.session.notes += restore_callbacks(self.own, self.extra.get("callbacks", []))
            if self.counts.epochs >= self._epochs:  # no epoch begins, where it is done else
                restore_random_state(self.found.random)
        self.board.begin(self.plan.recipe)
        steps = (self.model.history.params or {}).get("steps") if self.model.history else None
        about = RunAbout(
            epochs=self._epochs,
            steps=int(steps or 0),
            samples_per_step=self.counts.samples_per_step,
            xla=self.engine.compiled,
            first_epoch=self.counts.epochs,
            flops_per_step=self.plan.flops_per_step,
            peak_flops_per_s=self.plan.peak_flops_per_s,
        )
        self.plan.watch.begin(self.model, about)

    def test_begin(self) -> None:
        """Validation is to start: keep the metrics of the training for a stop in it."""
        self.plan.watch.tests()
        if self.checkpoints and not self.meeting.is_joint:
            self.session.before_validation = [(v, v.numpy()) for v in self.model.metrics_variables]

    def test_end(self) -> None:
        """Validation has ended."""
        self.plan.watch.tested()

    def epoch_ends(self) -> None:
        """An epoch has ended with its validation; the user's callbacks do not know yet."""
        self.plan.watch.epoch_ends()

    def epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        """An epoch has ended with its validation, and the user's callbacks have seen it."""
        self.session.before_validation = []
        for name, value in logs.items():
            with contextlib.suppress(TypeError, ValueError):
                self.session.history.setdefault(name, []).append(float(value))
        self.counts.epochs = epoch + 1
        self.plan.watch.epoch_end(epoch, logs)
        self.weights.check(epoch, self.hooks.place.step, logs)
        if self.workers:
            self.workers.epoch_end(epoch + 1)
        self.board.epoch_end(epoch, logs, self.model, self.plan.watch.samples_per_s)
        count = self.hooks.place.batch_count or self.hooks.place.step
        following = Cursor(epoch=epoch + 1, step=0, batch_count=count)
        wishes = {"stop": bool(self.session.stop), "end": bool(self.model.stop_training)}
        agreed = self.meeting.agree(always=True, **wishes)
        self.model.stop_training = "end" in agreed  # a callback of one worker ends it for all
        if stops := "stop" in agreed:
            self.session.stop = self.session.stop or "SIGTERM"
        if self.checkpoints:
            self.save(place=following, wait=stops)
        if stops and epoch + 1 < self._epochs and not self.model.stop_training:
            raise _Stopped

    def _lost(self, error: NanLoss) -> Finding:
        """Go back to the last good checkpoint, and look for where the number was lost."""
        if self.meeting.is_joint or self.engine.is_scheduled:  # repeating needs all processes
            if self.checkpoints and is_chief():
                keep_good(self.checkpoints)
            return unlocated(error)
        good = keep_good(self.checkpoints) if self.checkpoints else None
        if good and self.checkpoints:
            self.checkpoints.restore(self.engine.state(), good)
        self.plan.progress("looking for where the number was lost")
        step = self.engine.one_batch()
        found = repeated(self.model, self.hooks.dataset, step, error, good)
        if good and self.checkpoints:
            self.checkpoints.restore(self.engine.state(), good)
            self.session.notes.append(f"The last good checkpoint is {good.marker}.")
        return found

    def _outcome(self, stopped: str) -> TrainOutcome:
        counts, session = self.counts, self.session
        counts.accumulation = self.engine.accumulation
        return outcome_of(
            self.model,
            self.plan,
            counts,
            history=session.history,
            stopped=stopped,
            resumed_from=str(self.found.marker) if self.found else "",
            checkpoint_folder=self.checkpoints.folder if self.checkpoints else None,
            replica_count=replicas(self.model),
            findings=self.findings,
            notes=tuple(dict.fromkeys((*self.engine.notes, *session.notes))),
        )
