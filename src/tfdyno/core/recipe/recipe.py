"""Every setting of a training run, and the values that each may have."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, get_args

from tfdyno.core.base import settings
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import one_of
from tfdyno.core.recipe import recipe_reading
from tfdyno.core.recipe.recipe_reading import TENSORFLOW_CHOOSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Execution = Literal["auto", "xla", "graph"]
Strategy = Literal["", "single", "mirrored", "multiworker", "ps", "tpu"]
PRECISIONS = ("", *settings.PRECISIONS, "float8")
STRATEGIES = get_args(Strategy)[1:]
_NEAR_STRATEGY = {
    "parameter": "ps", "multi": "multiworker", "one": "single", "mirror": "mirrored", "tpu": "tpu",
}  # fmt: skip
"""Beginnings of other names for a strategy."""
DEVICES_WITHOUT_CARD = 2
"""Logical CPU devices, or processes, on which a strategy shows that it works."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """How the data reach the step. Defaults leave the pipeline as it is."""

    prefetch: int = 0
    """Batches that are made ready ahead; 0: as the pipeline has it; -1: TensorFlow chooses."""
    parallel_calls: int = 0
    """Elements that each ``map`` works on at once; 0: as it has it; -1: TensorFlow chooses."""
    cache: bool = False
    """Keep what the pipeline makes in the first epoch in memory for the others."""
    shuffle_buffer: int = 0
    """Elements that each ``shuffle`` draws from; 0: as the pipeline has it."""
    deterministic: bool | None = None
    """Whether parallel work keeps the order of the elements; None: as the pipeline has it."""
    private_threads: int = 0
    """Threads of the pipeline alone; 0: it shares TensorFlow's."""

    def __post_init__(self) -> None:
        """Refuse numbers out of their range; raises ``UsageError``."""
        least = {"prefetch": TENSORFLOW_CHOOSES, "parallel_calls": TENSORFLOW_CHOOSES}
        _check_numbers(self, least, prefix="input.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a workload is trained; equal recipes are the same run. Defaults leave it as it is."""

    precision: str = ""
    """Keras dtype policy, ``tf32``, or ``float8``: Keras' ``quantize("float8")`` of Dense and
    EinsumDense over mixed_bfloat16; empty: the script's own."""
    execution: Execution = "auto"
    """``auto``: what Keras chooses for ``jit_compile``."""
    batch_size: int = 0
    """Samples of each replica; 0: the workload's own."""
    accumulation: int = 1
    """Batches per update of the weights."""
    remat: str = ""
    """What is computed again in the backward pass instead of kept: ``blocks``, the bytes that
    activations may take (``8GiB``), or names of layers (``block1_*,head``); empty: nothing."""
    ema: float = 0.0
    """Momentum of the moving average of the weights; 0: the optimizer's own."""
    ema_overwrite: int = 0
    """Updates after which the average replaces the weights; 0: only at the end, as in Keras."""
    clip_norm: float = 0.0
    """Limit of the global norm of the gradients; 0: the optimizer's own."""
    loss_scale: float = 0.0
    """Fixed factor of the loss under mixed_float16; 0: dynamic, as in Keras."""
    steps_per_execution: int = 1
    strategy: Strategy = ""
    """``single``, ``mirrored``, ``multiworker``, ``ps`` (parameter server), ``tpu`` (all TPUs
    of the machine; untested); empty: the script's."""
    devices: int = 0
    """Cards or processes of the strategy, logical CPU devices where there is no card; 0: all
    cards, 2 without."""
    memory_growth: bool = False
    memory_limit_bytes: int = 0
    """The limit of each card, 0: all of it."""
    memory_fraction: float = 0.0
    """The part of each card's memory, to 1; 0: all that is free."""
    visible_devices: str = ""
    """Cards by number, ``0,1``; empty: all that there are."""
    threads_intra: int = 0
    """Threads of one operation; 0: TensorFlow's own choice."""
    threads_inter: int = 0
    """Operations at a time; 0: TensorFlow's own choice."""
    deterministic: bool = False
    seed: int | None = None
    retreat: bool = True
    """Whether a run that XLA fails to compile is run again with less of XLA; False: it fails."""
    input: InputOptions = field(default_factory=InputOptions)

    def __post_init__(self) -> None:
        """Refuse what no run can be.

        Raises:
            UsageError: A name is not known, or a number is out of its range.
        """
        if self.precision:
            one_of(self.precision, PRECISIONS[1:], "precision")
        one_of(self.execution, get_args(Execution), "execution")
        if self.strategy:
            _check_strategy(self.strategy)
        _check_numbers(self, {"accumulation": 1, "steps_per_execution": 1})
        if self.ema >= 1:
            raise UsageError(f"ema = {self.ema:g} is not possible", why="it is a momentum",
                             remedy="give less than 1, as 0.99")  # fmt: skip
        if self.memory_fraction > 1:
            raise UsageError(f"memory_fraction = {self.memory_fraction:g} is not possible",
                             remedy="give a part of the card's memory, as 0.5")  # fmt: skip
        recipe_reading.budget_bytes(self.remat)

    @property
    def id(self) -> str:
        """Eight hexadecimal digits that change when any setting changes.

        A setting that a later release adds leaves the digits of older recipes as they are.
        """
        import hashlib  # loads OpenSSL, which light commands do without

        settings_of_it = sorted(diff(Recipe(), self).items())
        return hashlib.sha256(repr(settings_of_it).encode()).hexdigest()[:8]

    @property
    def remat_budget_bytes(self) -> int:
        """Bytes that activations may take on each device; 0 where remat names no budget."""
        return recipe_reading.budget_bytes(self.remat)

    def replica_count(self, cards: int) -> int:
        """Count the devices or processes its strategy takes of a machine with so many cards."""
        if self.strategy in ("", "single", "tpu"):  # TPUs are counted where they are
            return 1
        return self.devices or cards or DEVICES_WITHOUT_CARD


def flat(recipe: Recipe) -> dict[str, Any]:
    """Return all settings by name, those of the input as ``input.prefetch``."""
    found: dict[str, Any] = {}
    for each in dataclasses.fields(Recipe):
        value = getattr(recipe, each.name)
        if dataclasses.is_dataclass(value):
            inner = dataclasses.fields(value)
            found |= {f"{each.name}.{one.name}": getattr(value, one.name) for one in inner}
        else:
            found[each.name] = value
    return found


def diff(a: Recipe, b: Recipe) -> dict[str, tuple[object, object]]:
    """Return settings in which two recipes differ, with both values."""
    of_b = flat(b)
    return {name: (value, of_b[name]) for name, value in flat(a).items() if value != of_b[name]}


def typed(texts: Iterable[str]) -> dict[str, str]:
    """Read ``key=value`` as typed, the last of a key counts; raises ``UsageError``."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UsageError(f"the setting '{text}' cannot be read", remedy="write key=value")
        found[name.strip()] = value.strip()
    return found


def from_settings(given: Mapping[str, object], base: Recipe | None = None) -> Recipe:
    """Put settings over ``base``, or over the recipe that changes nothing.

    Whether the settings go together is another question: ``composition.check_composition``.

    Args:
        given: Names of ``Recipe`` (``input.prefetch``, or a table ``input``) with values as typed
            on a command line, or as TOML has them.
        base: What all others are taken from.

    Raises:
        UsageError: A name is not known (tells the nearest), or a value is not possible.
    """
    base = base or Recipe()
    read = recipe_reading.read(given, _kinds())
    of_input = {name.partition(".")[2]: read.pop(name) for name in list(read) if "." in name}
    if of_input:
        read["input"] = dataclasses.replace(base.input, **of_input)
    return dataclasses.replace(base, **read)


def _kinds() -> dict[str, str]:
    """Return types of all settings by their flat names, as they are written in the classes."""
    kinds = {each.name: str(each.type) for each in dataclasses.fields(Recipe)}
    del kinds["input"]
    return kinds | {f"input.{e.name}": str(e.type) for e in dataclasses.fields(InputOptions)}


def _check_numbers(noun: object, least: Mapping[str, int], prefix: str = "") -> None:
    for each in dataclasses.fields(noun):  # type: ignore[arg-type]
        value = getattr(noun, each.name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        low = least.get(each.name, 0)
        if not math.isfinite(value) or value < low:
            what = f"{prefix}{each.name} = {value} is not possible"
            raise UsageError(what, remedy=f"give {low} or more")


def _check_strategy(name: str) -> None:
    near = [own for start, own in _NEAR_STRATEGY.items() if name.lower().startswith(start)]
    if name not in STRATEGIES and near:
        what = f"strategy '{name}' is not one of {', '.join(STRATEGIES)}"
        raise UsageError(what, remedy=f"did you mean {near[0]}?")
    one_of(name, STRATEGIES, "strategy")
