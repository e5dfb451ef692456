"""The values that a tuning tries where the user names none: from the workload and its device."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.software import Backend
from tfdyno.core.recipe.recipe import Recipe, flat
from tfdyno.core.recipe.recipe_reading import TENSORFLOW_CHOOSES
from tfdyno.core.train.search_space import BATCH, SearchSpace, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

DOUBLINGS = 3
"""Larger batches than the start's: up to eight times it, as far as they fit."""
HALVINGS = 5
"""Smaller ones, where the start's does not fit."""
SEVERAL_STEPS = 8
"""Steps of one execution, where one after the other is the start's."""
_OF_FIT = ("batch_size", "accumulation", "steps_per_execution")
"""Settings that only Keras' own ``fit`` can be given."""
_FLAGS = ("amx_bf16", "avx512_bf16")
_CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceFacts:
    """What the values depend on."""

    batch_size: int
    """Samples of each replica, under the start; 0: not known, or a part of the model."""
    execution: str
    """What the start is compiled to."""
    policy: str
    """Keras dtype policy of the model."""
    suited_policy: str
    """The one that the device is made for."""
    fits: bool = True
    """Whether the start does."""
    samples_per_epoch: int = 0
    """0: not known."""
    replicas: int = 1
    own_input: bool = True
    """Whether the workload's own data is read, and not made up."""
    has_pipeline: bool = True
    """Whether tf.data reads it."""
    backend: Backend = "tensorflow"
    """Of Keras."""
    data_bytes: float = 0.0
    """Bytes of an epoch, as the model is given it; 0: not known."""
    room_bytes: float = 0.0
    """Bytes of memory that a cache of it may take."""
    is_loop: bool = False
    """Whether it trains by a loop of its own, which makes its batches and calls its step itself."""
    accumulation: int = 1
    """Batches of an update, under the start."""
    keep_batch: bool = False


def space_of(
    named: Mapping[str, tuple[Value, ...]], start: Recipe, facts: SpaceFacts
) -> SearchSpace:
    """Return the values by setting, that of the start first.

    Args:
        named: By the user; their settings have these values and no others.
        start: The starting recipe; a setting that it makes is tuned only where it is named, except
            for the batch.
        facts: Of the workload and the device.

    Raises:
        UsageError: A setting is named that a loop of the script's own cannot be given, or one of
            the input where tf.data does not read it.
    """
    if facts.is_loop and (names := [name for name in named if not _is_of_loops(name)]):
        raise UsageError(f"{names[0]} cannot be tuned for a loop of the script's own",
                         why="it cannot be set from outside", remedy="leave it out")  # fmt: skip
    _check_pipeline(named, start, facts)
    made = {name for name, value in flat(start).items() if value != flat(Recipe())[name]}
    usual = {name: values for name, values in _usual(facts).items() if name not in made - {BATCH}}
    choices = {**usual, **named}
    found = {}
    for name, values in choices.items():
        own = _own(name, start, facts)
        several = (own, *(_resolved(name, one, facts) for one in values))
        found[name] = tuple(dict.fromkeys(several))
        if name == BATCH and facts.keep_batch:
            found[name] = _keeping(found[name], facts.batch_size * facts.accumulation)
    return SearchSpace(choices={name: values for name, values in found.items() if len(values) > 1}
                       or {BATCH: (_own(BATCH, start, facts),)})  # fmt: skip


def left_out(facts: SpaceFacts) -> tuple[str, ...]:
    """Say which settings are not tuned since they do not exist for the workload; each once."""
    said = []
    if facts.backend == "jax" and facts.execution == "xla":
        said.append("execution is not tuned: JAX compiles every step with XLA.")
    if facts.own_input and not (facts.has_pipeline or facts.is_loop):
        said.append("Settings of the input are not tuned: tf.data does not read this data.")
    return tuple(said)


def _check_pipeline(
    named: Mapping[str, tuple[Value, ...]], start: Recipe, facts: SpaceFacts
) -> None:
    """Refuse a setting of the input where tf.data does not read it; raises ``UsageError``."""
    if facts.has_pipeline:
        return
    for name, values in named.items():
        if name.startswith("input.") and any(value != flat(start)[name] for value in values):
            raise UsageError(f"{name} cannot be tuned for this data",
                             why="tf.data does not read it",
                             remedy="give fit a tf.data.Dataset, or leave it out")  # fmt: skip


def _keeping(batches: tuple[Value, ...], update_samples: int) -> tuple[Value, ...]:
    """Return the batches that an update is made of in whole numbers, the first in any case."""
    first, *others = batches
    parts = [size for size in others if isinstance(size, int) and size
             and update_samples % size == 0]  # fmt: skip
    return (first, *parts)


def _own(name: str, start: Recipe, facts: SpaceFacts) -> Value:
    return _resolved(name, flat(start)[name], facts)


def _resolved(name: str, value: Value, facts: SpaceFacts) -> Value:
    """Return a value that leaves the setting as it is, by what that comes to."""
    if name == BATCH:
        return value or facts.batch_size
    if name == "execution" and value == "auto":
        return facts.execution if facts.execution in _executions(facts) else "auto"
    return value


def _executions(facts: SpaceFacts) -> tuple[str, ...]:
    """Return what a recipe can ask for: on JAX there is no graph, a step is compiled or is not."""
    return ("xla",) if facts.backend == "jax" else ("xla", "graph")


def _usual(facts: SpaceFacts) -> dict[str, tuple[Value, ...]]:
    found: dict[str, tuple[Value, ...]] = {BATCH: _batches(facts)}
    is_known = facts.execution in ("xla", "graph") or (facts.backend == "jax" and facts.execution)
    if is_known and facts.replicas == 1:
        found["execution"] = _executions(facts)
    if facts.suited_policy != facts.policy:
        found["precision"] = ("", facts.suited_policy)
    if facts.replicas == 1:  # several in one execution fail under a strategy
        found["steps_per_execution"] = (1, SEVERAL_STEPS)
    if facts.own_input and facts.has_pipeline:
        found["input.prefetch"] = (0, TENSORFLOW_CHOOSES)
        found["input.parallel_calls"] = (0, TENSORFLOW_CHOOSES)
        if 0 < facts.data_bytes <= facts.room_bytes:
            found["input.cache"] = (False, True)
    if facts.is_loop:
        return {name: values for name, values in found.items() if _is_of_loops(name)}
    return found


def _is_of_loops(name: str) -> bool:
    """Return whether a setting can be given to a training loop of the script's own."""
    return name not in _OF_FIT and not name.startswith("input.")


def _batches(facts: SpaceFacts) -> tuple[Value, ...]:
    size = facts.batch_size
    if not size:
        return (0,)
    if not facts.fits:  # an update is then made of several
        smaller = [size >> times for times in range(1, HALVINGS + 1)]
        return tuple(one for one in smaller if one and size % one == 0)
    most = size << DOUBLINGS
    if facts.samples_per_epoch:
        most = min(most, facts.samples_per_epoch // facts.replicas)
    if facts.keep_batch:  # an update of the start may be made of fewer, larger ones
        most = min(most, size * facts.accumulation)
    larger = [size << times for times in range(1, DOUBLINGS + 1)]
    return (size, *(one for one in larger if one <= most))


def cpu_policy(cpuinfo: Path = _CPUINFO) -> str:
    """Return ``mixed_bfloat16`` where this CPU multiplies bfloat16 by itself, else ``float32``."""
    try:
        text = cpuinfo.read_text(errors="replace")
    except OSError:
        return "float32"
    words = next((line.split() for line in text.splitlines() if line.startswith("flags")), [])
    return "mixed_bfloat16" if any(flag in words for flag in _FLAGS) else "float32"


def keeps_batch(recipe: Recipe, batch_size: int, update_samples: int) -> bool:
    """Return whether an update takes as many samples as under the start.

    Args:
        recipe: Of the trial.
        batch_size: That it comes to, over all replicas.
        update_samples: Of the start, over all replicas; 0: not known.
    """
    return not update_samples or batch_size * recipe.accumulation == update_samples
