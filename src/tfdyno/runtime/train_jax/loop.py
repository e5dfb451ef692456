"""A training on JAX: Keras' own ``fit`` under its distribution, and what is its own."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from tfdyno.core.base.codec import write_atomic
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.recipe.recipe import InputOptions, Recipe
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.layout import FILE_NAME, to_toml
from tfdyno.core.train.training import Applied
from tfdyno.runtime.base.memory_counters import PeakMemory
from tfdyno.runtime.checkpoint.random_states import random_state, restore_random_state
from tfdyno.runtime.checkpoint.state import State, state_of
from tfdyno.runtime.recipe.build import change_model
from tfdyno.runtime.recipe.settle import settle_training
from tfdyno.runtime.train.nan import keep_good, unlocated
from tfdyno.runtime.train.outcome import beside_asked, iterations_of, policies, updates_of
from tfdyno.runtime.train.session import Cursor, TrainSession
from tfdyno.runtime.train.watch import TrainPlan, Watch
from tfdyno.runtime.train_jax.data import NO_BATCH, Batches, batches_of, replay_of
from tfdyno.runtime.train_jax.layout import SplitWeights, layout_of, rules_in
from tfdyno.runtime.train_jax.nan import Repeat
from tfdyno.runtime.train_jax.start import World
from tfdyno.runtime.workload.input_options import with_input_options

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Iterable, Sequence

    from tfdyno.core.base.untyped import DataIterator, Logs, Model, Value, Variable
    from tfdyno.core.doctor.finding import Finding
    from tfdyno.core.train.device_mesh import DeviceMesh
    from tfdyno.core.train.layout import Layout
    from tfdyno.core.train.training import RunSettings, TrainOutcome
    from tfdyno.runtime.remat.rewrite import RematPlan
    from tfdyno.runtime.train.watch import NanLoss

Rows = np.ndarray[Any, np.dtype[np.uint32]]
Holders = dict[tuple[int, int], list[int]]
"""The values of one part of a weight, with the ranks of the devices that hold each."""
_MOST_NAMED = 4


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
        self.batches.ran = self.ran
        self.layout: Layout | None = None
        self._random: dict[str, Any] = {}
        """The random generators at the beginning of the epoch."""
        self._remat: RematPlan | None = None
        self._new_logs: dict[str, Any] = {}
        """What the last call of the train function has returned."""
        self._is_unseen = False
        """Whether that call is not counted yet."""
        self._has_begun = self._is_checked = False

    def _enter(self, stack: contextlib.ExitStack) -> None:
        recipe = self.plan.recipe
        self.notes += settle_training(self.model, recipe, is_split=False)
        if recipe.input != InputOptions():
            self.arguments["x"], told = with_input_options(self.arguments.get("x"), recipe.input)
            self.notes += told
        stack.enter_context(batches_of(self.batches))
        stack.callback(self._give_back)

    def _give_back(self) -> None:
        if self._remat:
            self._remat.undo()
            self.notes += self._remat.notes

    def _state(self) -> State:
        self.model.jax_state_sync()  # the step holds the values, the variables none
        return state_of(self.model)

    def _iterations(self) -> int:
        return iterations_of(self.model)

    def _own_of(self, place: Cursor) -> tuple[dict[str, Any], dict[str, Any]]:
        return {}, {"random": self._random} if place.step else {}

    def _outcome(self, stopped: str, findings: tuple[Finding, ...]) -> TrainOutcome:
        self.samples_per_step = self.batches.largest
        taken = self.iterations - self.iterations_before
        updates, skipped = updates_of(self.model, taken, self.step, 1)
        return replace(
            super()._outcome(stopped, findings),
            updates=updates,
            skipped_updates=skipped,
            replica_count=self.world.mesh.replica_count,
            applied=_applied(self.model, self.plan.recipe, self.world.mesh),
            layout=self.layout,
        )

    # Moments

    def built(self, logs: Logs = None) -> None:
        """Tell how the weights lie, now that all are there, and set what a session left."""
        self.samples_per_step = self.batches.largest
        if self.plan.recipe.remat:
            each = self.samples_per_step // self.world.mesh.replica_count
            self._remat = change_model(self.model, self.plan.recipe, None, each, self.notes)
            self.model.make_train_function()  # the one that Keras has made is of the model before
        if isinstance(self.world.distribution, SplitWeights):
            self.layout = layout_of(self.model, self.world.distribution)
            self._tell_layout(self.layout, self.world.distribution)
        if self.settings.first_weights:
            from tfdyno.runtime.train.loop import begin_with

            begin_with(self.model, Path(self.settings.first_weights))
        if self.found:
            self._restore(self.found)
        self._take_logs()
        if self.consensus.is_joint:
            self.consensus.exchange_by(self._numbers_of_all)

    def _take_logs(self) -> None:
        """Keep what each call returns; an epoch of which all steps are done has what it had."""
        run = self.model.train_function
        before = self.model.get_metrics_result() if self.found else {}

        def stepped(state: Value, iterator: DataIterator) -> Value:
            if iterator is NO_BATCH:
                return before, state
            self._new_logs, state = run(state, iterator)
            self._is_unseen = True
            return self._new_logs, state

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
            drawn = self.extra["random"] if done else found.random
            if self.batches.ran and epoch:  # else the steps after a NaN: their data stand right
                self.batches.replay = replay_of(epoch, random_state(), drawn, self.plan.progress)
            restore_random_state(drawn)
            self.batches.skip, self.batches.epochs_before = done, epoch
            self.place.step = done
        self._random = random_state()
        if not self._has_begun and not found and self.checkpoints:
            self.save()  # the beginning, for a run that ends before its first checkpoint
        self._has_begun = True

    def ran(self, last: int) -> None:
        """The train function has returned, and the user's callbacks have seen it.

        Args:
            last: Number of the last step of the call, from 0.
        """
        done, self._is_unseen = last + 1, False
        if self.consensus.is_joint:
            jax.block_until_ready(self.logs)  # no process is further ahead of the others
        self._stepped(done, self._within(done) - self._within(self.place.step), self._new_logs)
        if not self.epoch_steps or done < self.epoch_steps:  # else the epoch's end does it
            self._between_steps()

    def epoch_ends(self, epoch: int, logs: Logs = None) -> None:
        """An epoch has ended with its validation: also one that a callback has cut short."""
        if self._is_unseen:
            self.ran(self.batches.last)
        super().epoch_ends(epoch, logs)

    def _within(self, done: int) -> int:
        """Return steps of an epoch; the last call of several may have fewer than it could."""
        return min(done, self.epoch_steps or done)

    # The end

    def _lost(self, error: NanLoss) -> Finding:
        """Go back to the last good checkpoint, and look for where the number was lost."""
        is_alone = not self.consensus.is_joint and self.world.distribution is None
        x = self.arguments.get("x")
        if not (is_alone and self.checkpoints) or isinstance(x, GeneratorType):
            return super()._lost(error)  # repeating needs all processes, and data that begin anew
        good = keep_good(self.checkpoints)
        if good is None:
            return unlocated(error)
        self.plan.progress("looking for where the number was lost")
        before, self.found, self._has_begun = self.found, good, False
        self.batches.is_taken, self.batches.ran = False, None
        self._restore(good)
        repeat = Repeat(self.model, error, good.position, is_stopped=lambda: bool(self.stop))
        found = repeat.run(self.arguments, begin_epoch=self.epoch_begin)
        self.found = before
        self._restore(good)
        self.notes.append(f"The last good checkpoint is {good.marker}.")
        return found

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
    inner = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    reported = {
        "precision": policies(model),
        "execution": "xla" if model.jit_compile else "eager",
        "accumulation": inner.gradient_accumulation_steps or 1,
        "steps_per_execution": model.steps_per_execution,
        "ema": inner.ema_momentum if inner.use_ema else 0.0,
        "clip_norm": inner.global_clipnorm or 0.0,
        "loss_scale": inner.loss_scale_factor or 0.0,
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


def check_same_weights(variables: Sequence[Any]) -> None:
    """Compare every part of every weight between the devices that hold it.

    JAX trusts each process to begin with the same values. A callback that sets weights on one of
    them, or data that one reads in another order, shows no error.

    Args:
        variables: Of Keras, the same in the same order in every process.

    Raises:
        ToolError: Two devices hold different numbers for one part; names the workers.
    """
    rows = np.array([row for one in variables for row in _rows_of(one)], np.uint32)
    seen: defaultdict[tuple[int, int], Holders] = defaultdict(dict)
    for rank, table in enumerate(_of_all(rows)):
        for row in table.tolist():
            seen[row[0], row[1]].setdefault((row[2], row[3]), []).append(rank)
    apart = [held for held in seen.values() if len(held) > 1]
    if not apart:
        return
    raise ToolError(
        f"the weights of {_names(odd_ones(apart[0]))} have drifted apart",
        why=f"{len(apart)} parts of weights differ between devices that should hold the same, so "
        "they do not train one model",
        remedy="look for code that sets weights on one worker by itself: a callback or a file "
        "that only one of them reads",
    )


def odd_ones(holders: Holders) -> list[int]:
    """Return who holds another value than most; all of them where no value has the majority."""
    most = max(map(len, holders.values()))
    usual = [ranks for ranks in holders.values() if len(ranks) == most]
    others = [ranks for ranks in holders.values() if len(usual) > 1 or ranks is not usual[0]]
    return sorted({rank for ranks in others for rank in ranks})


def check_same_data(digest: int) -> None:
    """Compare the first batch between all processes; raises ``UsageError`` where one differs."""
    found = _of_all(np.array([[digest]], np.uint32)).reshape(-1).tolist()
    if len(set(found)) > 1:
        odd = [rank for rank, one in enumerate(found) if one != found[0]]
        raise UsageError(
            f"{_names(odd)} read another first batch than worker 0",
            why="each process has to read all samples in one order, of which it keeps its part",
            remedy="leave out what shares the data in the script, and give shuffles a seed",
        )


def numbers_of_all(own: list[float]) -> Value:
    """Return the numbers of all processes, a row for each; a joint operation."""
    return np.asarray(multihost_utils.process_allgather(np.array(own, np.float32)))


def _rows_of(variable: Variable) -> Iterable[tuple[int, int, int, int]]:
    """Yield each part that this process has: which it is, and what is in it, 64 bits each."""
    for shard in variable.value.addressable_shards:
        name = f"{variable.path} {shard.index}".encode()
        raw = np.ascontiguousarray(np.asarray(shard.data)).tobytes()
        yield (*_halves(name), *_halves(raw))


def _halves(data: bytes) -> tuple[int, int]:
    digest = hashlib.blake2b(data, digest_size=8).digest()
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:], "big")


def _of_all(rows: Rows) -> Rows:
    """Return the rows of all processes, one table for each."""
    if jax.process_count() == 1:
        return rows[None]
    return np.asarray(multihost_utils.process_allgather(rows))


def _names(ranks: Sequence[int]) -> str:
    named = [f"worker {rank}" for rank in ranks[:_MOST_NAMED]]
    return " and ".join(named + ["others"] * (len(ranks) > _MOST_NAMED))
