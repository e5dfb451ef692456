"""A training on JAX: Keras' own ``fit`` under its distribution, and what is its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from tfdyno.core.base.codec import write_atomic
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.layout import FILE_NAME, to_toml
from tfdyno.core.train.training import Applied
from tfdyno.runtime.base.memory_counters import PeakMemory
from tfdyno.runtime.checkpoint.random_states import random_state, restore_random_state
from tfdyno.runtime.checkpoint.state import State, state_of
from tfdyno.runtime.recipe.settle import settle_step
from tfdyno.runtime.train.outcome import beside_asked, policies
from tfdyno.runtime.train.session import Cursor, TrainSession
from tfdyno.runtime.train.watch import TrainPlan, Watch
from tfdyno.runtime.train_jax.data import NO_BATCH, Batches, batches_of
from tfdyno.runtime.train_jax.layout import SplitWeights, layout_of, rules_in
from tfdyno.runtime.train_jax.ranks import check_same_data, check_same_weights, numbers_of_all
from tfdyno.runtime.train_jax.start import World

if TYPE_CHECKING:
    import contextlib

    from tfdyno.core.base.untyped import DataIterator, Logs, Model, Value
    from tfdyno.core.doctor.finding import Finding
    from tfdyno.core.train.device_mesh import DeviceMesh
    from tfdyno.core.train.layout import Layout
    from tfdyno.core.train.training import RunSettings, TrainOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class JaxTraining:
    """How it is trained, and who is told."""

    recipe: Recipe
    plan: JaxPlan
    world: World
    progress: Callable[[str], None]


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
    watch = Watch(training.progress, memory=_memory)
    plan = TrainPlan(
        recipe=training.recipe, settings=settings, watch=watch, progress=training.progress
    )
    return _Session(model, arguments, plan, training).run()


class _Session(TrainSession):
    def __init__(
        self,
        model: Model,
        arguments: dict[str, Any],
        plan: TrainPlan,
        training: JaxTraining,
    ) -> None:
        self.training, self.world = training, training.world
        rank, count = self.world.rank, self.world.process_count
        super().__init__(model, arguments, plan, rank=rank, count=count, writes=rank == 0)
        self.batches = Batches(self.world, check_same_data)
        self.layout: Layout | None = None
        self._random: dict[str, Any] = {}
        """The random generators at the beginning of the epoch."""
        self._has_begun = self._is_checked = False

    def _enter(self, stack: contextlib.ExitStack) -> None:
        self.notes += settle_step(self.model, self.plan.recipe)
        stack.enter_context(batches_of(self.batches))

    def _callbacks(self) -> list[Any]:
        found = super()._callbacks()
        found[-1].on_train_batch_end = self.ran
        return found

    def _state(self) -> State:
        self.model.jax_state_sync()  # the step holds the values, the variables none
        return state_of(self.model)

    def _iterations(self) -> int:
        return int(self.model.optimizer.iterations)

    def _own_of(self, place: Cursor) -> tuple[dict[str, Any], dict[str, Any]]:
        return {}, {"random": self._random} if place.step else {}

    def _outcome(self, stopped: str, findings: tuple[Finding, ...]) -> TrainOutcome:
        self.samples_per_step = self.batches.largest
        return replace(
            super()._outcome(stopped, findings),
            replica_count=self.world.mesh.replica_count,
            applied=_applied(self.model, self.plan.recipe, self.world.mesh),
            layout=self.layout,
        )

    # Moments

    def built(self, logs: Logs = None) -> None:
        """Tell how the weights lie, now that all are there, and set what a session left."""
        self.samples_per_step = self.batches.largest
        if isinstance(self.world.distribution, SplitWeights):
            self.layout = layout_of(self.model, self.world.distribution)
            self._tell_layout(self.layout, self.world.distribution)
        if self.found:
            self._restore(self.found)
            self._allow_no_batch()
        if self.meeting.is_joint:
            self.meeting.exchange_by(self._numbers_of_all)

    def _allow_no_batch(self) -> None:
        """Let an epoch of which all steps are done end, for which Keras wants logs."""
        run, logs = self.model.train_function, self.model.get_metrics_result()

        def stepped(state: Value, iterator: DataIterator) -> Value:
            return (logs, state) if iterator is NO_BATCH else run(state, iterator)

        self.model.train_function = stepped

    def _tell_layout(self, layout: Layout, split: SplitWeights) -> None:
        if self.world.rank:
            return
        self.plan.progress(json.dumps({"event": "layout", "layout": asdict(layout)}))
        if not self.settings.output:
            return
        text = to_toml(rules_in(layout, split)).encode()
        paths = [Path(self.settings.output) / FILE_NAME]
        if self.training.plan.write_layout:
            paths.append(Path(self.training.plan.write_layout))
        for path in paths:
            write_atomic(path, text)

    def epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Start an epoch whose data are not read yet."""
        found = self.found
        self.place, self.logs = Cursor(epoch=epoch), {}
        if found and epoch == found.position.epoch and not self._has_begun:
            done = found.position.step_in_epoch
            if done:  # Keras has reset the metrics
                self._restore(found)
            restore_random_state(self.extra["random"] if done else found.random)
            self.batches.skip, self.batches.epochs_before = done, epoch
            self.place.step = done
        self._random = random_state()
        if not self._has_begun and not found and self.checkpoints:
            self.save()  # the beginning, for a run that ends before its first checkpoint
        self._has_begun = True

    def ran(self, last: int, logs: Logs) -> None:
        """The train function has returned, and the user's callbacks have seen it.

        Args:
            last: Number of the last step of the call, from 0.
            logs: What it returned.
        """
        done = last + 1
        jax.block_until_ready(self.logs)  # no process is further ahead of the others
        self._stepped(done, self._within(done) - self._within(self.place.step), logs)
        if not self.epoch_steps or done < self.epoch_steps:  # else the epoch's end does it
            self._between_steps()

    def _within(self, done: int) -> int:
        """Return steps of an epoch; the last call of several may have fewer than it could."""
        return min(done, self.epoch_steps or done)

    def _numbers_of_all(self, own: list[float]) -> Value:
        jax.block_until_ready(self.logs)  # no exchange of a step is under way
        return numbers_of_all(own)

    def _epoch_ended(self, epoch: int, logs: Logs) -> None:
        if not self._is_checked:
            self._is_checked = True
            check_same_weights(self.model.trainable_variables)


def _memory() -> tuple[int, str]:
    """Return the most memory so far: of the first device, or of the process without a GPU."""
    stats = jax.local_devices()[0].memory_stats() or {}
    if "peak_bytes_in_use" in stats:
        return int(stats["peak_bytes_in_use"]), "allocator"
    return PeakMemory().read()


def _applied(model: Model, recipe: Recipe, mesh: DeviceMesh) -> tuple[Applied, ...]:
    """Return the settings of the recipe with what Keras reports of them, and the mesh."""
    reported = {
        "precision": policies(model),
        "execution": "xla" if model.jit_compile else "eager",
        "steps_per_execution": model.steps_per_execution,
    }
    count = jax.process_count()
    devices = f"{jax.device_count()} device{'s' * (jax.device_count() != 1)}"
    where = f"{mesh} on {devices} of {count} process{'es' * (count != 1)}"
    backend = Applied(name="backend", asked="jax", reported=f"JAX {jax.__version__}")
    return (
        *beside_asked(recipe, reported),
        backend,
        Applied(name="mesh", asked=str(mesh), reported=where),
    )
