"""Which recipes a tuning chooses from: settings with their values, every combination of them."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import one_of
from tfdyno.core.recipe.recipe import Recipe, diff, flat, from_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

TUNABLE = (
    "batch_size", "precision", "execution", "accumulation", "steps_per_execution",
    "threads_intra", "threads_inter", "input.prefetch", "input.parallel_calls", "input.cache",
    "input.deterministic", "input.private_threads",
)  # fmt: skip
"""Settings that are there for speed, and that Keras' own ``fit`` can be measured with."""
OWN = "own"
"""A value as typed: what the starting recipe has. Alone it leaves the setting untuned."""
BATCH, ACCUMULATION = "batch_size", "accumulation"
Value = str | int | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpace:
    """Values of each setting that is tuned; the first is that of the recipe it starts from."""

    choices: dict[str, tuple[Value, ...]]

    def __post_init__(self) -> None:
        """Refuse a setting without a value."""
        empty = [name for name, values in self.choices.items() if not values]
        if empty:
            raise ValueError(f"{empty[0]} has no value")

    @property
    def size(self) -> int:
        """How many combinations there are."""
        return math.prod(len(values) for values in self.choices.values())

    def combinations(self) -> Iterator[dict[str, Value]]:
        """Give every one of them, that of the starting recipe first."""
        for values in itertools.product(*self.choices.values()):
            yield dict(zip(self.choices, values, strict=True))

    def holds(self, values: Mapping[str, Value]) -> bool:
        """Return whether the values are a combination of this space."""
        return values.keys() == self.choices.keys() and all(
            value in self.choices[name] for name, value in values.items()
        )


def read_space(texts: Iterable[str], base: Recipe) -> dict[str, tuple[Value, ...]]:
    """Read ``key=a,b,c`` as typed; the last of a key counts.

    Args:
        texts: As typed.
        base: The starting recipe, which every value is set on once.

    Raises:
        UsageError: A setting is not known or not one to tune (tells the nearest), or a value is
            not possible.
    """
    found: dict[str, tuple[Value, ...]] = {}
    for text in texts:
        name, equals, typed = (part.strip() for part in text.partition("="))
        if not equals or not name or not typed:
            raise UsageError(f"the values '{text}' cannot be read", remedy="write key=a,b,c")
        values = [part.strip() for part in typed.split(",")]
        if not all(values):
            raise UsageError(f"the values '{text}' cannot be read",
                             why="one of them is empty", remedy="write key=a,b,c")  # fmt: skip
        found[name] = read_values(name, values, base)
    return found


def read_values(name: str, values: Iterable[object], base: Recipe) -> tuple[Value, ...]:
    """Return values of one setting, each once; raises as ``read_space`` does."""
    _check_tunable(name)
    read = [_read(name, value, base) for value in values]
    if not read:
        raise UsageError(f"{name} has no value", remedy="give some, or leave it out")
    return tuple(dict.fromkeys(read))


def _read(name: str, value: object, base: Recipe) -> Value:
    given = {} if value == OWN else {name: _typed(value)}
    found: Value = flat(from_settings(given, base))[name]
    return found


def _check_tunable(name: str) -> None:
    if name in TUNABLE:
        return
    if name in flat(Recipe()):
        why = "it is not there for speed, or Keras' own fit, which is measured, has no such setting"
        raise UsageError(f"{name} is not tuned", why=why, remedy=f"tune {', '.join(TUNABLE)}")
    one_of(name, TUNABLE, "setting")


def recipe_at(
    values: Mapping[str, Value], space: SearchSpace, start: Recipe, *, update_samples: int
) -> Recipe:
    """Set the values on the starting recipe; one that is the start's own is left as it is.

    A batch that is a part of an update of the start is accumulated until it is one, unless the
    accumulation is tuned. Where the start itself accumulates, every other batch is accumulated as
    often as it goes into an update, and at least once.

    Args:
        values: By flat name.
        space: Whose first values are those of the start.
        start: The starting recipe.
        update_samples: Samples of an update per replica under it; 0: not known.

    Raises:
        UsageError: The values do not go together.
    """
    given: dict[str, Any] = {
        name: value for name, value in values.items() if value != space.choices[name][0]
    }
    batch_size = given.get(BATCH, 0)
    if batch_size and update_samples and ACCUMULATION not in space.choices:
        is_part = batch_size < update_samples and update_samples % batch_size == 0
        if is_part or start.accumulation > 1:
            given[ACCUMULATION] = max(1, update_samples // batch_size)
    return from_settings({name: _typed(value) for name, value in given.items()}, start)


def _typed(value: object) -> object:
    return "none" if value is None else value


def changes_of(recipe: Recipe, start: Recipe) -> dict[str, str]:
    """Return settings of a recipe that are not as the start has them, as they are typed."""
    return {name: typed_value(value) for name, (_, value) in diff(start, recipe).items()}


def typed_value(value: object) -> str:
    """Return a value as it is typed behind ``--set key=``; empty text is the script's own."""
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
