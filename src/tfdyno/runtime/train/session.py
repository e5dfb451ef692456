"""One session of a training on either backend: what is done around Keras' ``fit`` and in it.

Counts, checkpoints, resuming, stopping, the watch and the outcome are the same for all. How a step
is called, where the state lies and how the data go on is a backend's own: see ``loop`` beside this
for TensorFlow and ``train_jax.loop`` for JAX.
"""

from __future__ import annotations

import contextlib
import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tfdyno.core.train.training import CHECKPOINTS, MARKERS, MODEL, TrainOutcome
from tfdyno.process.stop_asked import asked_to_stop
from tfdyno.runtime.base.fit_watcher import FitWatcher
from tfdyno.runtime.checkpoint.callbacks import callback_state, restore_callbacks
from tfdyno.runtime.checkpoint.checkpoints import Checkpoints
from tfdyno.runtime.checkpoint.files import Position
from tfdyno.runtime.checkpoint.random_states import restore_random_state
from tfdyno.runtime.train.consensus import Consensus
from tfdyno.runtime.train.finite_weights import FiniteWeights
from tfdyno.runtime.train.nan import keep_good, unlocated
from tfdyno.runtime.train.outcome import saved
from tfdyno.runtime.train.watch import NanLoss, RunAbout, TrainPlan

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Logs, Model
    from tfdyno.core.doctor.finding import Finding
    from tfdyno.runtime.checkpoint.files import Checkpoint
    from tfdyno.runtime.checkpoint.state import State

CONSENSUS = ".meeting"  # its name on the disk, also in folders of runs that began before
"""The folder in the folder of a run where workers meet."""


class Stopped(BaseException):
    """Leaves ``fit`` after the checkpoint of a stop; no ``except Exception`` of the user does."""


@dataclass(slots=True, kw_only=True)
class Cursor:
    """Where training stands; counted from 0."""

    epoch: int = 0
    step: int = 0
    """Batches of this epoch that are done."""
    batch_count: int | None = None
    """Batches of an epoch, where it is known; Keras learns it in the first one."""


class TrainSession(ABC):
    """One session of a training; ``fit`` calls back into it.

    Attributes:
        step: Steps that are done, those of earlier sessions included.
        place: Where training stands.
        samples_per_step: Over all replicas, and ``compiled``, whether XLA compiles the step: both
            are set by the backend before training begins.
        found: The checkpoint that this session goes on from.
        extra: What it holds beside the state, once that is restored.
    """

    def __init__(
        self,
        model: Model,
        arguments: dict[str, Any],
        plan: TrainPlan,
        *,
        rank: int,
        count: int,
        writes: bool,
    ) -> None:
        """Begin with nothing done.

        Args:
            model: A compiled Keras model.
            arguments: Of ``fit``, by name.
            plan: What is asked.
            rank: Of this process among those that run each step together.
            count: Those processes.
            writes: Whether this one writes the checkpoints of all.
        """
        self.model, self.plan, self.settings = model, plan, plan.settings
        self.arguments = {**arguments, "verbose": 0}  # Keras' bar would be drawn into ours
        given = arguments.get("callbacks") or []
        self.own = list(given) if isinstance(given, list | tuple) else [given]
        self.place, self.epoch_steps = Cursor(), 0
        self.step = self.epochs = self.samples_per_step = 0
        self.iterations = self.iterations_before = 0
        self.compiled = True
        self.history: dict[str, list[float]] = {}
        self.notes: list[str] = []
        self.stop = ""
        self.nan: NanLoss | None = None
        self.checkpoints: Checkpoints | None = None
        self.found: Checkpoint | None = None
        self.extra: dict[str, Any] = {}
        self.logs: dict[str, Any] = {}
        self._writes = writes
        folder = Path(self.settings.output, CONSENSUS) if self.settings.output else None
        self.consensus = Consensus(folder, rank=rank, count=count)
        self.weights = FiniteWeights(model, self.consensus)

    # What differs

    @abstractmethod
    def _enter(self, stack: contextlib.ExitStack) -> None:
        """Take over model and data until the stack is left."""

    @abstractmethod
    def _state(self) -> State:
        """Return all variables that training changes, at rest."""

    @abstractmethod
    def _iterations(self) -> int:
        """Return the batches that the optimizer has counted."""

    @abstractmethod
    def _own_of(self, place: Cursor) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what a checkpoint here keeps of this backend: of the data, and beside them."""

    @abstractmethod
    def built(self, logs: Logs = None) -> None:
        """All weights are there, and the user's callbacks have not begun."""

    @abstractmethod
    def epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """An epoch is to start; the user's callbacks do not know yet."""

    @abstractmethod
    def _epoch_ended(self, epoch: int, logs: Logs) -> None:
        """An epoch has ended in numbers, and nothing of it is kept yet."""

    # The session

    def run(self) -> TrainOutcome:
        """Train until the end, a stop, or a loss or a weight that is not a number."""
        findings: tuple[Finding, ...] = ()
        with contextlib.ExitStack() as stack:
            if self.settings.output:
                self._open(stack, Path(self.settings.output) / CHECKPOINTS)
            self._enter(stack)
            stack.enter_context(asked_to_stop(self._stop))
            stopped = self._fit()
            self.iterations = self._iterations()
            if self.nan:
                findings = (self._lost(self.nan),)
            if self.checkpoints:
                self.checkpoints.wait()
                self.notes += self.checkpoints.notes
        outcome = self._outcome(stopped, findings)
        self.consensus.leave()
        return outcome

    @property
    def _epochs(self) -> int:
        """The epochs that the training is to have, unless a callback ends it before."""
        return int(self.arguments.get("epochs") or 1)

    def _open(self, stack: contextlib.ExitStack, folder: Path) -> None:
        self.checkpoints = stack.enter_context(
            Checkpoints(
                folder,
                keep=self.settings.keep,
                every_steps=self.settings.checkpoint_steps,
                every_s=self.settings.checkpoint_s,
                writes=self._writes,
            )
        )
        self.found = self.checkpoints.latest() if self.settings.resume else None
        if self.found:
            position = self.found.position
            self.arguments["initial_epoch"] = position.epoch
            if self._epochs <= position.data.get("ended_of", 0):
                self.arguments["epochs"] = position.epoch  # only its end is missing
            self.step = self.found.step
            self.history = {name: list(v) for name, v in self.found.history.items()}

    def _fit(self) -> str:
        """Call Keras; returns why it ended early, or nothing."""
        try:
            self.model.fit(**{**self.arguments, "callbacks": self._callbacks()})
        except Stopped:
            return self.stop
        except NanLoss as error:
            self.nan = error
            return error.reason
        finally:
            self.plan.watch.end()
        return ""

    def _callbacks(self) -> list[Any]:
        """Return the user's own, with those that tell the session before and behind them."""
        first = FitWatcher(
            on_train_begin=self.built,
            on_epoch_begin=self.epoch_begin,
            on_test_begin=self.begin_validation,
            on_epoch_end=self.epoch_ends,
        )
        last = FitWatcher(
            on_train_begin=self.train_begin,
            on_test_end=self.end_validation,
            on_epoch_end=self.epoch_end,
        )
        return [first, *self.own, last]

    def _lost(self, error: NanLoss) -> Finding:
        """Go back to the last good checkpoint, and tell what was lost."""
        if self.checkpoints and self._writes:
            keep_good(self.checkpoints)
        return unlocated(error)

    def _outcome(self, stopped: str, findings: tuple[Finding, ...]) -> TrainOutcome:
        """Put together what is known at the end; writes the model where it is whole."""
        settings, watch = self.settings, self.plan.watch
        path, notes = "", tuple(dict.fromkeys(self.notes))
        if settings.output and settings.save_model and not stopped and not self.nan:
            path, more = saved(self.model, Path(settings.output) / MODEL)
            notes = (*notes, *more)
        found = sorted(self.checkpoints.folder.glob(MARKERS)) if self.checkpoints else []
        return TrainOutcome(
            history=self.history,
            epochs=self.epochs,
            steps=self.step,
            updates=self.iterations - self.iterations_before,
            seconds_s=watch.seconds_s,
            samples_per_s=watch.samples_per_s,
            global_batch_size=self.samples_per_step,
            seed=self.plan.recipe.seed,
            parameter_count=sum(math.prod(weight.shape) for weight in self.model.weights),
            peak_memory_bytes=watch.memory_bytes,
            memory_kind=watch.memory_kind,
            stopped=stopped,
            resumed_from=str(self.found.marker) if self.found else "",
            checkpoints=tuple(map(str, found)),
            model_path=path,
            findings=findings,
            notes=notes,
            pace=watch.pace.pace(),
        )

    # Steps

    def _stepped(self, done: int, steps: int, logs: Logs) -> bool:
        """Count the steps of a call.

        Args:
            done: Steps of this epoch so far.
            steps: Those of this call.
            logs: What it returned.

        Returns:
            Whether the watch looked at them, which is twice a second; or a loss is not finite.

        Raises:
            NanLoss: That is so, and no other worker has to be told.
        """
        self.step += steps
        self.place.step, self.logs = done, logs
        try:
            return self.plan.watch.steps(done, logs)
        except NanLoss as error:
            if not self.consensus.is_joint:
                raise
            self.nan = self.nan or error
            return True

    def _between_steps(self) -> None:
        """Do what is due between two steps: end it, keep a checkpoint, or both."""
        checkpoints, place = self.checkpoints, self.place
        due = checkpoints.due(self.step, time.monotonic()) if checkpoints else False
        agreed = self.consensus.agree(
            nan=bool(self.nan), stop=bool(self.stop), save=due and self.consensus.leads
        )
        if "nan" in agreed:
            raise self.nan or NanLoss("loss", math.nan, epoch=place.epoch + 1, step=place.step)
        stops = "stop" in agreed
        if checkpoints and (stops or "save" in agreed or checkpoints.due_by_steps(self.step)):
            self._keep(wait=stops)
        if stops:
            self._leave_fit()

    def _keep(self, *, wait: bool) -> None:
        """Save the step that is done; raises ``NanLoss`` where a weight of it is lost."""
        self.weights.check(self.place.epoch, self.place.step, self.logs)
        self.save(wait=wait)

    def _leave_fit(self) -> NoReturn:
        self.stop = self.stop or "SIGTERM"  # of another worker
        raise Stopped

    def _stop(self, signal_name: str) -> None:
        if self.stop and signal_name == "Ctrl-C":
            raise KeyboardInterrupt  # whoever asks a second time does not want to wait
        self.stop = signal_name

    # Checkpoints

    def _restore(self, found: Checkpoint) -> None:
        """Set the state of an earlier session; what is read again draws as it did then."""
        assert self.checkpoints
        self.extra = self.checkpoints.restore(self._state(), found, random=False) or {}

    def save(self, *, wait: bool = False, is_end: bool = False) -> None:
        """Keep all that the next session needs to go on as if there had been no end.

        Args:
            wait: Return when it is on the disk.
            is_end: Of the epoch: the next session begins with the following one.
        """
        assert self.checkpoints
        place, ended_of = self.place, 0
        if is_end:
            count = place.batch_count or place.step
            place = Cursor(epoch=place.epoch + 1, step=0, batch_count=count)
            ended_of = self._epochs if self.model.stop_training else 0
        began_s = time.perf_counter()
        state = self._state()
        callbacks, notes = callback_state(self.own)
        self.notes += [note for note in notes if note not in self.notes]
        data, beside = self._own_of(place)
        self.checkpoints.save(
            self.step,
            state,
            Position(
                epoch=place.epoch,
                step_in_epoch=place.step,
                seed=self.plan.recipe.seed,
                data={**data, "ended_of": ended_of},
            ),
            {"callbacks": callbacks, "iterations_before": self.iterations_before, **beside},
            wait=wait,
            history=self.history,
        )
        if self.place.step:  # not the one before the first step
            self.plan.watch.saved(time.perf_counter() - began_s)

    # Callbacks

    def train_begin(self, logs: Logs = None) -> None:
        """The user's callbacks have begun: the first number of updates, and what they knew."""
        self.iterations_before = int(self.extra.get("iterations_before", self._iterations()))
        self.epochs = int(self.arguments.get("initial_epoch") or 0)
        if self.found:
            self.notes += restore_callbacks(self.own, self.extra.get("callbacks", []))
            if self.epochs >= self._epochs:  # no epoch begins, where it is done else
                restore_random_state(self.found.random)
        steps = (self.model.history.params or {}).get("steps") if self.model.history else None
        self.epoch_steps = int(steps or 0)
        about = RunAbout(
            epochs=self._epochs,
            steps=self.epoch_steps,
            samples_per_step=self.samples_per_step,
            xla=self.compiled,
            first_epoch=self.epochs,
            flops_per_step=self.plan.flops_per_step,
            peak_flops_per_s=self.plan.peak_flops_per_s,
        )
        self.plan.watch.begin(self.model, about)

    def begin_validation(self, logs: Logs = None) -> None:
        """Validation is to start."""
        self.plan.watch.tests()

    def end_validation(self, logs: Logs = None) -> None:
        """Validation has ended."""
        self.plan.watch.tested()

    def epoch_ends(self, epoch: int, logs: Logs = None) -> None:
        """An epoch has ended with its validation; the user's callbacks do not know yet."""
        self.plan.watch.epoch_ends()

    def epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        """An epoch has ended with its validation, and the user's callbacks have seen it."""
        for name, value in logs.items():
            with contextlib.suppress(TypeError, ValueError):
                self.history.setdefault(name, []).append(float(value))
        self.epochs = epoch + 1
        self.plan.watch.epoch_end(epoch, logs)
        self.weights.check(epoch, self.place.step, logs)
        self._epoch_ended(epoch, logs)
        wishes = {"stop": bool(self.stop), "end": bool(self.model.stop_training)}
        agreed = self.consensus.agree(always=True, **wishes)
        self.model.stop_training = "end" in agreed  # a callback of one worker ends it for all
        stops = "stop" in agreed
        if self.checkpoints:
            self.save(wait=stops, is_end=True)
        if stops and epoch + 1 < self._epochs and not self.model.stop_training:
            self._leave_fit()
