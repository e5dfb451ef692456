"""What a training would do, as terminal text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.base.units import HOUR_S, format_bytes, significant
from tfdyno.core.recipe.recipe import Recipe, diff
from tfdyno.core.recipe.recipe_words import MEANINGS
from tfdyno.view.base.text import WIDTH, paint, pairs, wrapped
from tfdyno.words.base.amounts import about_hours, about_step, plural
from tfdyno.words.base.language import say, say_later
from tfdyno.words.recipe.settings import value_words
from tfdyno.words.train.notes import notes_words

if TYPE_CHECKING:
    from tfdyno.core.train.train_preview import TrainPreview

_FITS = {
    "yes": say_later("{memory}, fits"),
    "no": say_later("{memory}, does not fit"),
    "may not": say_later("{memory}, may not fit"),
}
_BOUND_BY = {
    "compute": say_later("compute"),
    "memory": say_later("memory||bottleneck"),
    "launch": say_later("launch"),
    "communication": say_later("communication"),
    "input": say_later("input||bottleneck"),
}


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
        wrapped(say("Nothing was trained or written: this is --dry-run."), width=width),
    ]
    return "\n\n".join(block for block in blocks if block)


def headline(plan: TrainPreview) -> str:
    """Return what would be trained, and for how long, as far as that is known."""
    steps = plan.steps_per_epoch
    length = plural(plan.epochs, "epoch")
    if steps:
        length = say("{epochs} of {steps}", epochs=length, steps=plural(steps, "step"))
    spent, found = "", plan.estimate
    if found and steps:
        hours = found.step_s.best * steps * plan.epochs / HOUR_S
        cards = plan.gpu_name if plan.replicas == 1 else f"{plan.replicas} x {plan.gpu_name}"
        spent = say(", about {hours} of steps on {cards}", hours=about_hours(hours), cards=cards)
    return say(
        "{title} would go on for {length}{spent}."
        if plan.goes_on
        else "{title} would train for {length}{spent}.",
        title=plan.title,
        length=length,
        spent=spent,
    )


def facts(plan: TrainPreview) -> list[tuple[str, str]]:
    """Name and words; words are empty where nothing is known."""
    found = plan.estimate
    parameters = say("{count} parameters", count=significant(plan.parameter_count))
    if plan.trainable_parameter_count != plan.parameter_count:
        trained = significant(plan.trainable_parameter_count)
        parameters += say(", {count} of them trained", count=trained)
    batch = f"{plan.batch_size:,}"
    if plan.replicas > 1:
        batch = say(
            "{batch} on each of {replicas} replicas, {total:,} together",
            batch=batch,
            replicas=plan.replicas,
            total=plan.global_batch_size,
        )
    step = memory = ""
    if found:
        best, bounds = about_step(found.step_s)
        step = say(
            "{best} ({bounds}), {rate} samples/s, bound by {cause}",
            best=best,
            bounds=bounds,
            rate=significant(found.samples_per_s.best),
            cause=say(_BOUND_BY.get(found.bound_by, found.bound_by)),
        )
        memory = say(
            "{used} of {usable}",
            used=format_bytes(found.device_memory_bytes.best),
            usable=format_bytes(found.usable_memory_bytes),
        )
        memory = say(_FITS[found.fits], memory=memory) if found.fits in _FITS else memory
    return [
        (say("workload"), plan.reference),
        (say("model"), parameters),
        (say("trains by"), say(" on ").join(filter(None, (plan.optimizer, plan.loss)))),
        (say("batch"), batch if plan.batch_size else say("not known")),
        (say("data"), say("{samples} an epoch", samples=plural(plan.samples_per_epoch, "sample"))
                      if plan.samples_per_epoch
                      else say("of unknown length: no end can be foretold")),
        (say("step"), step),
        (say("memory"), memory),
        (say("output"), plan.output),
        (say("notes"), notes_words(plan.notes)),
    ]  # fmt: skip


def settings_text(plan: TrainPreview, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return each setting of the recipe with what it does, or why it is there."""
    changed = diff(Recipe(), plan.recipe)
    if not changed:
        return say("Recipe: no settings; everything stays as the script has it.")
    lines = [say("Recipe {name}:", name=plan.recipe.id)]
    for name, (_, value) in changed.items():
        said = plan.reasons.get(name) or say(MEANINGS[name])
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
