"""What a training would do, as terminal text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.base.units import HOUR_S, format_bytes, significant
from tfdyno.core.recipe.recipe import Recipe, diff
from tfdyno.core.recipe.recipe_words import MEANINGS
from tfdyno.view.base.text import WIDTH, paint, pairs, wrapped
from tfdyno.words.base.amounts import about_hours, about_step, plural
from tfdyno.words.recipe.settings import value_words

if TYPE_CHECKING:
    from tfdyno.core.train.train_preview import TrainPreview

_FITS = {"yes": "fits", "no": "does not fit", "may not": "may not fit"}


def train_preview_text(plan: TrainPreview, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return the whole plan: what would be trained, how, for how long, and where it would be kept.

    Args:
        plan: What was planned.
        width: Columns of the screen.
        colour: Whether to print colours.
    """
    blocks = [
        paint(wrapped(headline(plan), width=width), "bold", colour=colour),
        pairs(facts(plan), width=width),
        settings_text(plan, width=width, colour=colour),
        wrapped("Nothing was trained or written: this is --dry-run.", width=width),
    ]
    return "\n\n".join(block for block in blocks if block)


def headline(plan: TrainPreview) -> str:
    """Return what would be trained, and for how long, as far as that is known."""
    steps = plan.steps_per_epoch
    verb = "would go on" if plan.goes_on else "would train"
    length = plural(plan.epochs, "epoch") + (f" of {plural(steps, 'step')}" if steps else "")
    text = f"{plan.title} {verb} for {length}"
    found = plan.estimate
    if found and steps:
        hours = found.step_s.best * steps * plan.epochs / HOUR_S
        cards = plan.gpu_name if plan.replicas == 1 else f"{plan.replicas} x {plan.gpu_name}"
        text += f", about {about_hours(hours)} of steps on {cards}"
    return f"{text}."


def facts(plan: TrainPreview) -> list[tuple[str, str]]:
    """Name and words; words are empty where nothing is known."""
    found = plan.estimate
    parameters = f"{significant(plan.parameter_count)} parameters"
    if plan.trainable_parameter_count != plan.parameter_count:
        parameters += f", {significant(plan.trainable_parameter_count)} of them trained"
    each = f" on each of {plan.replicas} replicas, {plan.global_batch_size:,} together"
    batch = f"{plan.batch_size:,}" + (each if plan.replicas > 1 else "")
    step = memory = ""
    if found:
        best, bounds = about_step(found.step_s)
        step = f"{best} ({bounds}), {significant(found.samples_per_s.best)} samples/s, bound by "
        step += found.bound_by
        memory = f"{format_bytes(found.device_memory_bytes.best)} of "
        memory += f"{format_bytes(found.usable_memory_bytes)}"
        memory += f", {_FITS[found.fits]}" if found.fits in _FITS else ""
    return [
        ("workload", plan.reference),
        ("model", parameters),
        ("trains by", " on ".join(filter(None, (plan.optimizer, plan.loss)))),
        ("batch", batch if plan.batch_size else "not known"),
        ("data", f"{plural(plan.samples_per_epoch, 'sample')} an epoch"
                 if plan.samples_per_epoch else "of unknown length: no end can be foretold"),
        ("step", step),
        ("memory", memory),
        ("output", plan.output),
        ("notes", " ".join(f"{note.rstrip('.')}." for note in plan.notes)),
    ]  # fmt: skip


def settings_text(plan: TrainPreview, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return each setting of the recipe with what it does, or why it is there."""
    changed = diff(Recipe(), plan.recipe)
    if not changed:
        return "Recipe: no settings; everything stays as the script has it."
    lines = [f"Recipe {plan.recipe.id}:"]
    for name, (_, value) in changed.items():
        said = plan.reasons.get(name) or MEANINGS[name]
        lines.append(f"  {paint(f'{name} = {value_words(name, value)}', 'bold', colour=colour)}")
        lines.append(wrapped(said, width=width, first="    ", rest="    "))
    return "\n".join(lines)


def train_preview_document(plan: TrainPreview) -> dict[str, Any]:
    """Return the plan as JSON has it."""
    fields = to_builtins(plan)
    found = fields.pop("estimate")
    names = (
        "gpu", "replicas", "batch_size", "step_s", "samples_per_s", "device_memory_bytes",
        "usable_memory_bytes", "fits", "bound_by", "compile_s", "made_by", "warnings",
    )  # fmt: skip
    return {
        "dry_run": True,
        **fields,
        "global_batch_size": plan.global_batch_size,
        "steps_per_epoch": plan.steps_per_epoch,
        "estimate": {name: found[name] for name in names} if found else None,
    }
