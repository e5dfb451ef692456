"""What the tool assumes where the user says nothing, with where each number is from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from tfdyno.catalog.tables import DATA
from tfdyno.core.base.codec import from_builtins, read_toml
from tfdyno.core.choose.advice import Assumed
from tfdyno.core.choose.serving_size import ServingOverhead

T = TypeVar("T")
FILE, SERVING_FILE, RECIPE_FILE = "assumptions.toml", "serving_overhead.toml", "recipe_rules.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeRules:
    """Limits of the choice of a recipe: what it rests on beside the estimate."""

    least_gain_ratio: float
    """A change that an estimate calls less faster than this is not made."""
    first_mixed_float16_capability: float
    first_mixed_bfloat16_capability: float
    xla_on_cpu_low_ratio: float
    """So many times as long a step takes with XLA on a CPU, at least."""
    xla_on_cpu_high_ratio: float
    """The same, at most."""
    precision_ratio_log_width: float
    """Half of the interval, in the logarithm, of the ratio of the times in two precisions."""
    batch_ratio_log_width: float
    """The same of the ratio of the times at two batches."""
    optimizer_state_ratio: float
    """Share of a card that an optimizer's state has to take for others to be weighed."""


@cache
def assumed() -> Assumed:
    """Read the assumptions; raises ``UsageError`` when the file is damaged."""
    return _read_values(FILE, Assumed)


@cache
def assumption_sources() -> dict[str, str]:
    """Name of an assumption to the source of its number."""
    return _sources(FILE)


@cache
def serving_overhead() -> ServingOverhead:
    """Read what a request costs beside the model; raises ``UsageError`` for a damaged file."""
    return _read_values(SERVING_FILE, ServingOverhead)


@cache
def serving_overhead_sources() -> dict[str, str]:
    """Name of a number of ``serving_overhead`` to its source."""
    return _sources(SERVING_FILE)


@cache
def recipe_rules() -> RecipeRules:
    """Read the rules; raises ``UsageError`` when the file is damaged."""
    return _read_values(RECIPE_FILE, RecipeRules)


def _read_values(file: str, kind: type[T]) -> T:
    """Return the values of a file in which every number has a source beside it."""
    rows = read_toml(DATA / file)
    return from_builtins({name: row["value"] for name, row in rows.items()}, kind, where=file)


def _sources(file: str) -> dict[str, str]:
    return {name: row["source"] for name, row in read_toml(DATA / file).items()}
