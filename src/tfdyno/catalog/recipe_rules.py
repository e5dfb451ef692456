"""What a chosen recipe rests on beside the estimate, with where each number is from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tfdyno.catalog.assumptions import read_values

FILE = "recipe_rules.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeRules:
    """Limits of the choice."""

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
def recipe_rules() -> RecipeRules:
    """Read the rules; raises ``UsageError`` when the file is damaged."""
    return read_values(FILE, RecipeRules)
