"""The recipe of a chosen option of a memory plan, with a sentence for each of its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.recipe.recipe import Recipe, diff
from tfdyno.words.base.amounts import of_gib

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.auto_recipe import Option
    from tfdyno.core.choose.memory_plan import PlannedOption
    from tfdyno.jobs.choose.predict import Predictor

COMPUTED = (
    "Memory and times are computed from the traced step; no device was measured. Ratios are to the "
    "script as it is on a card that had the room."
)


def plan_recipe(own: Predictor, chosen: Option) -> Recipe:
    """Return the settings of an option; what is the script's own already is left out.

    Args:
        own: The workload as it is, with the settings that were asked for.
        chosen: The option.
    """
    kept = chosen.precision == own.traced.trace.policy
    asked = own.batch_source == "as asked"
    return Recipe(
        precision=own.precision if kept else chosen.precision,
        execution=chosen.execution,
        batch_size=chosen.batch_size if asked or chosen.accumulation > 1 else 0,
        accumulation=chosen.accumulation,
        remat=chosen.remat,
    )


def plan_reasons(recipe: Recipe, chosen: PlannedOption, base: Option) -> dict[str, str]:
    """Return a sentence for every setting of the recipe."""
    one = chosen.option
    total = one.batch_size * one.accumulation
    whole = of_gib(base.device_memory_bytes.best, base.usable_memory_bytes)
    said = {
        "precision": f"Activations take half in {one.precision}; the weights stay float32."
        if one.precision.startswith("mixed_")
        else f"As asked: {recipe.precision}.",
        "execution": f"The step was weighed as {_executed(one)}.",
        "batch_size": f"{total:,} samples at once are too many: as the script is they take {whole}."
        if one.accumulation > 1
        else "The batch that was asked about.",
        "accumulation": f"An update keeps its {total:,} samples."
        + (
            f" BatchNormalization sees {one.batch_size:,} of them at a time."
            if "batch statistics" in chosen.learns_differently
            else ""
        ),
        "remat": "Blocks compute their insides again in the backward pass: a step takes "
        f"{one.recompute_ratio:.2f} times as long, computed from the traced step.",
    }
    return {name: said[name] for name in diff(Recipe(), recipe)}


def plan_notes(options: Sequence[Option], chosen: Option | None) -> tuple[str, ...]:
    """Return what nobody knows, and what is no setting of a recipe."""
    notes = [COMPUTED]
    if chosen and chosen.optimizer:
        notes.append(
            f"The optimizer is no setting of a recipe: compile the model with {chosen.optimizer}, "
            "which learns differently; find its learning rate anew."
        )
    if (chosen is None or chosen.optimizer) and (near := _may_fit(options)):
        notes.append(
            f"Without another optimizer, {near.precision} at batch {near.batch_size:,} may fit "
            "too: its range reaches below the limit. --route exact compiles it."
        )
    if any(one.optimizer for one in options):
        notes.append(
            "Another optimizer learns differently: its memory and time were computed by putting it "
            "in place of the script's own."
        )
    if chosen and chosen.memory_made_by == "quick" and chosen.execution == "xla":
        notes.append("Memory was not compiled: --route exact proves the chosen option.")
    return tuple(notes)


def _may_fit(options: Sequence[Option]) -> Option | None:
    """Return the fastest that learns as the script does and whose range reaches below the limit."""
    near = (
        one
        for one in options
        if not one.optimizer
        and one.memory_made_by == "quick"
        and one.device_memory_bytes.low <= one.usable_memory_bytes
    )
    return min(near, key=lambda one: one.update_s.best, default=None)


def _executed(one: Option) -> str:
    return "XLA compiles it" if one.execution == "xla" else "TensorFlow runs it without XLA"
