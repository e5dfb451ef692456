"""A training on JAX: Keras' own ``fit`` under its distribution, with checkpoints and a watch."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from tfdyno.core.base.codec import write_atomic
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.layout import FILE_NAME, to_toml
from tfdyno.core.train.training import CHECKPOINTS, RunSettings, TrainOutcome
from tfdyno.process.stop_asked import asked_to_stop
from tfdyno.runtime.checkpoint.callbacks import callback_state, restore_callbacks
from tfdyno.runtime.checkpoint.checkpoints import Checkpoints
from tfdyno.runtime.checkpoint.files import Position
from tfdyno.runtime.checkpoint.random_states import random_state, restore_random_state
from tfdyno.runtime.checkpoint.state import state_of
from tfdyno.runtime.train.consensus import Consensus
from tfdyno.runtime.train.finite_weights import FiniteWeights
from tfdyno.runtime.train.nan import keep_good, unlocated
from tfdyno.runtime.train.watch import NanLoss, RunAbout, Watch
from tfdyno.runtime.train_jax.callbacks import First, Last
from tfdyno.runtime.train_jax.data import NO_BATCH, Batches, batches_of
from tfdyno.runtime.train_jax.layout import SplitWeights, layout_of, rules_in
from tfdyno.runtime.train_jax.outcome import Session, memory, outcome_of, settle
from tfdyno.runtime.train_jax.ranks import check_same_data, check_same_weights, numbers_of_all
from tfdyno.runtime.train_jax.start import World

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import DataIterator, Logs, Model, Value
    from tfdyno.core.doctor.finding import Finding
    from tfdyno.core.train.layout import Layout
    from tfdyno.runtime.checkpoint.files import Checkpoint

MEETING = ".meeting"
"""In the folder of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JaxTraining:
    """How it is trained, and who is told."""

    recipe: Recipe
    plan: JaxPlan
    world: World
    progress: Callable[[str], None]


class _Stopped(BaseException):
    """Leaves ``fit`` after the checkpoint of a stop; no ``except Exception`` of the user does."""


def train(
    model: Model,
    arguments: dict[str, Any],
    settings: RunSettings,
    training: JaxTraining,
) -> TrainOutcome:
    """Train a compiled model that was made under Keras' distribution.

    Args:
        model: A compiled Keras model.
        arguments: Of ``fit``, by name; batch sizes are those over all devices.
        settings: Of this fit.
        training: Recipe, layout and devices.

    Raises:
        UsageError: The model, its data, the recipe or the layout do not go together.
        ToolError: A checkpoint cannot be written, or the weights of the workers drift apart.
    """
    return _Session(model, arguments, settings, training).run()


class _Session:
    """One session of a training; ``fit`` calls back into it."""

    def __init__(
        self,
        model: Model,
        arguments: dict[str, Any],
        settings: RunSettings,
        training: JaxTraining,
    ) -> None:
        self.model, self.settings, self.training = model, settings, training
        self.arguments = {**arguments, "verbose": 0}
        self.world, self.session = training.world, Session()
        self.watch = Watch(training.progress, memory=memory)
        self.batches = Batches(self.world, check_same_data)
        given = arguments.get("callbacks") or []
        self.own = list(given) if isinstance(given, list | tuple) else [given]
        self.checkpoints: Checkpoints | None = None
        self.found: Checkpoint | None = None
        self.extra: dict[str, Any] = {}
        self.layout: Layout | None = None
        self.place, self.epoch_steps = (0, 0), 0
        self.random: dict[str, Any] = {}
        self.before: Any = None
        self.is_checked = False
        folder = Path(settings.output) if settings.output else None
        self.meeting = Consensus(
            folder / MEETING if folder else None,
            rank=self.world.rank,
            count=self.world.process_count,
        )
        self.weights = FiniteWeights(model, self.meeting)

    def run(self) -> TrainOutcome:
        """Train until the end, a stop, or a loss or a weight that is not a number."""
        findings: tuple[Finding, ...] = ()
        with contextlib.ExitStack() as stack:
            if self.settings.output:
                self._open(stack, Path(self.settings.output) / CHECKPOINTS)
            self.session.notes += settle(self.model, self.training.recipe)
            stack.enter_context(batches_of(self.batches))
            stack.enter_context(asked_to_stop(self._stop))
            stopped = self._fit()
            if self.session.nan:
                if self.checkpoints and self.world.rank == 0:
                    keep_good(self.checkpoints)
                findings = (unlocated(self.session.nan),)
            if self.checkpoints:
                self.checkpoints.wait()
                self.session.notes += self.checkpoints.notes
        self.session.batch_size = self.batches.largest
        outcome = outcome_of(
            self.model,
            self.settings,
            self.training.recipe,
            self.session,
            self.watch,
            stopped=stopped,
            resumed_from=str(self.found.marker) if self.found else "",
            layout=self.layout,
            mesh=self.world.mesh,
            findings=findings,
        )
        self.meeting.leave()
        return outcome

    @property
    def _epochs(self) -> int:
        return int(self.arguments.get("epochs") or 1)

    def _open(self, stack: contextlib.ExitStack, folder: Path) -> None:
        self.checkpoints = stack.enter_context(
            Checkpoints(
                folder,
                keep=self.settings.keep,
                every_steps=self.settings.checkpoint_steps,
                every_s=self.settings.checkpoint_s,
                writes=self.world.rank == 0,
            )
        )
        self.found = self.checkpoints.latest() if self.settings.resume else None
        if self.found:
            position = self.found.position
            self.arguments["initial_epoch"] = position.epoch
            if self._epochs <= position.data.get("ended_of", 0):
                self.arguments["epochs"] = position.epoch  # only its end is missing
            self.session.step = self.found.step
            self.session.history = {name: list(v) for name, v in self.found.history.items()}

    def _fit(self) -> str:
        """Call Keras; returns why it ended early, or nothing."""
        try:
            self.model.fit(**{**self.arguments, "callbacks": [First(self), *self.own, Last(self)]})
        except _Stopped:
            return self.session.stop
        except NanLoss as error:
            self.session.nan = error
            return error.reason
        finally:
            self.watch.end()
        return ""

    # Moments

    def built(self) -> None:
        """All weights are there: tell how they lie, and set what an earlier session left."""
        if isinstance(self.world.distribution, SplitWeights):
            self.layout = layout_of(self.model, self.world.distribution)
            self._tell_layout(self.layout, self.world.distribution)
        iterations = int(self.model.optimizer.iterations)
        if self.found and self.checkpoints:
            state = state_of(self.model)
            self.extra = self.checkpoints.restore(state, self.found, random=False) or {}
            self._allow_no_batch()
            iterations = int(self.extra.get("iterations_before", iterations))
        self.session.iterations_before = iterations

    def _allow_no_batch(self) -> None:
        """An epoch of which all steps are done has its end to come, for which Keras wants logs."""
        run, logs = self.model.train_function, self.model.get_metrics_result()

        def stepped(state: Value, iterator: DataIterator) -> Value:
            return (logs, state) if iterator is NO_BATCH else run(state, iterator)

        self.model.train_function = stepped

    def _tell_layout(self, layout: Layout, split: SplitWeights) -> None:
        if self.world.rank:
            return
        self.training.progress(json.dumps({"event": "layout", "layout": asdict(layout)}))
        if not self.settings.output:
            return
        text = to_toml(rules_in(layout, split)).encode()
        paths = [Path(self.settings.output) / FILE_NAME]
        if self.training.plan.write_layout:
            paths.append(Path(self.training.plan.write_layout))
        for path in paths:
            write_atomic(path, text)

    def train_begin(self) -> None:
        """The user's callbacks have begun: set what they knew."""
        self.session.epochs = int(self.arguments.get("initial_epoch") or 0)
        if self.meeting.is_joint:
            self.meeting.exchange_by(self._numbers_of_all)
        if self.found:
            self.session.notes += restore_callbacks(self.own, self.extra.get("callbacks", []))
            if self.session.epochs >= self._epochs:  # no epoch begins, where it is done else
                restore_random_state(self.found.random)
        steps = (self.model.history.params or {}).get("steps") if self.model.history else None
        self.epoch_steps = int(steps or 0)
        self.watch.begin(
            self.model,
            RunAbout(
                epochs=self._epochs,
                steps=self.epoch_steps,
                samples_per_step=self.batches.largest,
                xla=True,
                first_epoch=self.session.epochs,
            ),
        )

    def epoch_begin(self, epoch: int) -> None:
        """An epoch is to start; its data are not read yet."""
        found, self.place = self.found, (epoch, 0)
        self.before = None
        if found and epoch == found.position.epoch and not self.session.has_begun:
            done = found.position.step_in_epoch
            if done and self.checkpoints:  # Keras has reset the metrics
                self.checkpoints.restore(state_of(self.model), found, random=False)
            restore_random_state(self.extra["random"] if done else found.random)
            self.batches.skip, self.batches.epochs_before = done, epoch
            self.place = (epoch, done)
        self.random = random_state()
        if not self.session.has_begun and not found and self.checkpoints:
            self._save()  # the beginning, for a run that ends before its first checkpoint
        self.session.has_begun = True

    def ran(self, done: int, logs: Logs) -> None:
        """The train function has returned: counting, watching, checkpoints, stopping."""
        epoch, before = self.place
        self.session.step += self._within(done) - self._within(before)
        self.place = (epoch, done)
        if self.before is not None:
            jax.block_until_ready(self.before)  # no process is further ahead of the others
        self.before = logs
        try:
            self.watch.steps(done, logs)
        except NanLoss as error:
            if not self.meeting.is_joint:
                raise
            self.session.nan = self.session.nan or error
        if not self.epoch_steps or done < self.epoch_steps:  # else the epoch's end does it
            self._between_steps()

    def _within(self, done: int) -> int:
        """Steps of an epoch; the last call of several may have fewer than it could."""
        return min(done, self.epoch_steps or done)

    def _between_steps(self) -> None:
        session, checkpoints, step = self.session, self.checkpoints, self.session.step
        due = checkpoints.due(step, time.monotonic()) if checkpoints else False
        agreed = self.meeting.agree(
            nan=bool(session.nan), stop=bool(session.stop), save=due and self.meeting.leads
        )
        if "nan" in agreed:
            epoch, done = self.place
            raise session.nan or NanLoss("loss", math.nan, epoch=epoch + 1, step=done)
        stops = "stop" in agreed
        if checkpoints and (stops or "save" in agreed or checkpoints.due_by_steps(step)):
            self.weights.check(*self.place, self.before)
            self._save(wait=stops)
        if stops:
            session.stop = session.stop or "SIGTERM"
            raise _Stopped

    def _numbers_of_all(self, own: list[float]) -> Value:
        jax.block_until_ready(self.before)  # no exchange of a step is under way
        return numbers_of_all(own)

    def test_begin(self) -> None:
        """Validation is to start."""
        self.watch.tests()

    def test_end(self) -> None:
        """Validation has ended."""
        self.watch.tested()

    def epoch_ends(self) -> None:
        """An epoch has ended with its validation; the user's callbacks do not know yet."""
        self.watch.epoch_ends()

    def epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        """An epoch has ended with its validation, and the user's callbacks have seen it."""
        for name, value in logs.items():
            with contextlib.suppress(TypeError, ValueError):
                self.session.history.setdefault(name, []).append(float(value))
        self.session.epochs = epoch + 1
        self.watch.epoch_end(epoch, logs)
        self.weights.check(epoch, self.place[1], logs)
        if not self.is_checked:
            self.is_checked = True
            check_same_weights(self.model.trainable_variables)
        wishes = {"stop": bool(self.session.stop), "end": bool(self.model.stop_training)}
        agreed = self.meeting.agree(always=True, **wishes)
        self.model.stop_training = "end" in agreed  # a callback of one worker ends it for all
        stops = "stop" in agreed
        if self.checkpoints:
            self._save(wait=stops, is_end=True)
        if stops and epoch + 1 < self._epochs and not self.model.stop_training:
            self.session.stop = self.session.stop or "SIGTERM"
            raise _Stopped

    # Checkpoints

    def _save(self, *, wait: bool = False, is_end: bool = False) -> None:
        """Keep all that the next session needs to go on as if there had been no end."""
        assert self.checkpoints
        self.model.jax_state_sync()  # the step holds the values, the variables none
        (epoch, step), ended_of = self.place, 0
        if is_end:
            epoch, step = epoch + 1, 0
            ended_of = self._epochs if self.model.stop_training else 0
        states, notes = callback_state(self.own)
        self.session.notes += [note for note in notes if note not in self.session.notes]
        began_s = time.perf_counter()
        extra = {"callbacks": states, "iterations_before": self.session.iterations_before}
        if step:
            extra["random"] = self.random
        self.checkpoints.save(
            self.session.step,
            state_of(self.model),
            Position(
                epoch=epoch,
                step_in_epoch=step,
                seed=self.training.recipe.seed,
                data={"ended_of": ended_of},
            ),
            extra,
            wait=wait,
            history=self.session.history,
        )
        if self.place[1]:
            self.watch.saved(time.perf_counter() - began_s)

    def _stop(self, signal_name: str) -> None:
        if self.session.stop and signal_name == "Ctrl-C":
            raise KeyboardInterrupt  # whoever asks a second time does not want to wait
        self.session.stop = signal_name
