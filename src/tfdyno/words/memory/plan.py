"""A memory plan in words: the answer, an option, what it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import GIB
from tfdyno.words.base.amounts import dashed, gib, listed, of_gib, plural
from tfdyno.words.base.language import say, say_later
from tfdyno.words.base.names import named
from tfdyno.words.memory.basis import UNVERIFIED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.base.interval import Interval
    from tfdyno.core.choose.auto_recipe import Option
    from tfdyno.core.choose.memory_plan import MemoryPlan, PlannedOption
    from tfdyno.core.choose.workload import FineTune

OTHER_LEARNING = say_later("changes what is learned")


def plan_headline(plan: MemoryPlan, card: str) -> str:
    """Return the answer: whether it fits, with what, at what cost."""
    if plan.chosen is None:
        return _closest(plan, card)
    one = plan.chosen
    if one.option == plan.base.option:
        return say(
            "{verb} {card} as it is: {memory}.",
            verb=_verb(one.option),
            card=card,
            memory=memory_words(one.option),
        )
    means = listed(changes_of(one.option, plan.base.option))
    learning = (
        say(" ({learning})", learning=say(OTHER_LEARNING))
        if "optimizer" in one.learns_differently
        else ""
    )
    return say(
        "{verb} {card} with {means}{learning}: {memory}, {ratio} the time per sample.",
        verb=_verb(one.option),
        card=card,
        means=means,
        learning=learning,
        memory=memory_words(one.option),
        ratio=ratio_words(one.time_ratio),
    )


def safe_sentence(plan: MemoryPlan) -> str:
    """Say what to take where the chosen one is too near the limit; empty: there is no need."""
    if plan.safe is None:
        return ""
    one = plan.safe
    means = listed(changes_of(one.option, plan.base.option))
    return say(
        "Certain to fit, with all of its range: {means}, {memory}, {ratio} the time per sample.",
        means=means,
        memory=memory_words(one.option),
        ratio=ratio_words(one.time_ratio),
    )


def base_sentence(plan: MemoryPlan) -> str:
    """Return what the script takes on its own."""
    one = plan.base.option
    known = say("it should fit")
    if not one.fits or is_settled(one):
        known = say("it fits") if one.fits else say("it does not fit")
    return say(
        "As it is ({precision}, {batch}) {known}: {memory}.",
        precision=one.precision,
        batch=batch_words(one),
        known=known,
        memory=memory_words(one),
    )


def changes_of(option: Option, base: Option) -> list[str]:
    """Return what is to be changed: ``mixed_float16``, ``batch 32 x 2``, ``recomputed blocks``."""
    found = [option.precision] if option.precision != base.precision else []
    if option.fine_tune and base.fine_tune:
        found += fine_tune_changes(option.fine_tune, base.fine_tune)
    if option.accumulation > 1:
        found.append(
            say(
                "batch {batch:,} × {accumulation}",
                batch=option.batch_size,
                accumulation=option.accumulation,
            )
        )
    if option.remat:
        found.append(say("recomputed blocks"))
    if option.optimizer:
        found.append(say("optimizer {optimizer}", optimizer=option.optimizer))
    return found or [say("the script as it is")]


def fine_tune_changes(one: FineTune, own: FineTune) -> list[str]:
    """Return in what the training of a preset is another: ``LoRA 8``, ``int8``, ``256 tokens``."""
    found = []
    if one.lora_rank != own.lora_rank:
        found.append(f"LoRA {one.lora_rank}")
    if one.quantize != own.quantize:
        found.append(one.quantize)
    if one.sequence_length != own.sequence_length:
        found.append(say("{tokens:,} tokens", tokens=one.sequence_length))
    return found


def learns_by(option: Option, base: Option) -> str:
    """Write ``sgd``, ``LoRA 8, int8``; empty: as the script does."""
    parts = [option.optimizer] if option.optimizer else []
    if option.fine_tune and base.fine_tune:
        parts += fine_tune_changes(option.fine_tune, base.fine_tune)
    return say(", ").join(parts)


def fine_tune_code(one: FineTune) -> str:
    """Return the lines of Keras that make a model be trained so; empty: none are needed."""
    lines = [f'model.quantize("{one.quantize}")'] if one.quantize else []
    lines += [f"model.backbone.enable_lora({one.lora_rank})"] if one.lora_rank else []
    return "; ".join(lines)


def weighed_words(plan: MemoryPlan) -> str:
    """Write ``12 options were weighed``."""
    return say(
        "{options} was weighed" if plan.weighed == 1 else "{options} were weighed",
        options=plural(plan.weighed, "option"),
    )


def batch_words(option: Option) -> str:
    """Write ``batch 64``, ``batch 32 × 2``."""
    return say("batch {batch}", batch=batch_cell(option))


def batch_cell(option: Option) -> str:
    """Write ``64``, ``32 × 2``."""
    parts = f" × {option.accumulation}" if option.accumulation > 1 else ""
    return f"{option.batch_size:,}{parts}"


def memory_words(option: Option) -> str:
    """Write ``14.2 of 15 GiB (12–16), unverified on a device``."""
    held = option.device_memory_bytes
    spread = dashed(held.low / GIB, held.high / GIB)
    return say(
        "{memory} ({bounds}), {standing}",
        memory=of_gib(held.best, option.usable_memory_bytes),
        bounds=spread,
        standing=standing(option),
    )


def standing(option: Option) -> str:
    """Return what stands behind a figure of memory."""
    if option.verified:
        return say("compiled at this very batch, {standing}", standing=say(UNVERIFIED))
    if option.memory_made_by == "quick":
        return say(UNVERIFIED)
    return say("compiled, {standing}", standing=say(UNVERIFIED))


def ratio_words(ratio: Interval) -> str:
    """Write ``1.04× [0.98–1.10]``."""
    return f"{ratio.best:.2f}× [{ratio.low:.2f}–{ratio.high:.2f}]"


def fit_cell(option: Option) -> str:
    """Write ``yes``, ``?`` where the range reaches over the limit, ``no``."""
    return named("no" if not option.fits else "yes" if is_settled(option) else "?")


def is_settled(option: Option) -> bool:
    """Return whether an option that fits does so with its whole range, or by a compile of it."""
    return option.fits_surely or option.verified


def shown_options(plan: MemoryPlan, most: int) -> list[PlannedOption]:
    """Return the first of the front, with the chosen and the safe one among them; fastest first."""
    named = [one.option for one in (plan.chosen, plan.safe) if one]
    first: Sequence[PlannedOption] = plan.options[:most]
    return [*first, *(one for one in plan.options[most:] if one.option in named)]


def _verb(option: Option) -> str:
    return say("Fits") if is_settled(option) else say("Should fit")


def _closest(plan: MemoryPlan, card: str) -> str:
    assert plan.closest is not None
    one = plan.closest.option
    means = listed(changes_of(one, plan.base.option))
    short = gib(one.device_memory_bytes.best - one.usable_memory_bytes)
    return say(
        "Nothing that was weighed fits {card}. The closest is {means}: "
        "{memory}, {short} GiB too much.",
        card=card,
        means=means,
        memory=memory_words(one),
        short=short,
    )
