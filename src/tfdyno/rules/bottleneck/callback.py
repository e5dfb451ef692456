"""Callbacks, validation, checkpoints and logs that the step waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.measure.step_facts import CallbackFacts
from tfdyno.rules.bottleneck.draft import Draft, duration, evidence, percent, taking
from tfdyno.rules.bottleneck.gains import amdahl
from tfdyno.rules.bottleneck.tables import cause, limits, matching
from tfdyno.words.base.language import say
from tfdyno.words.base.names import named
from tfdyno.words.diagnose.told import fact_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.rules.bottleneck.seen import Seen

_KINDS = (("validation", "validation_each_epoch"), ("checkpoint", "checkpoint_each_step"),
          ("logging", "logging"))  # fmt: skip
CALLBACK_CAUSES = ("callback.slow_callback", *(f"callback.{name}" for _, name in _KINDS))


def slow_callbacks(seen: Seen) -> Iterator[Draft]:
    """Find each callback that takes a good part of the time, of its steps and of its epochs."""
    for one in sorted(_all(seen), key=lambda each: -_cost_s(seen, each)):
        cost_s = _cost_s(seen, one)
        name = _cause(one)
        least = limits()["least_part_ratio"]
        if name == "callback.validation_each_epoch":
            least = limits()["validation_ratio"]
        whole_s = seen.step_s + _beside_s(seen)
        if cost_s < max(least * whole_s, seen.split.spread_s) or cost_s <= 0.0:
            continue
        told = []
        if one.per_step_s > 0.0:
            told.append(
                evidence(
                    "{name} takes {per_step} in each step of {step}",
                    "callbacks timed",
                    name=named(one.name),
                    per_step=duration(one.per_step_s),
                    step=duration(seen.step_s),
                )
            )
        if one.per_epoch_s > 0.0:
            told.append(
                evidence(
                    "{name} takes {per_epoch} in each epoch of {steps} steps",
                    "callbacks timed",
                    name=named(one.name),
                    per_epoch=duration(one.per_epoch_s),
                    steps=seen.facts.steps_per_epoch or say("unknown"),
                )
            )
        traced = [
            evidence(
                "{function} is traced in it again and again: {differs}",
                "traces counted",
                function=each.function,
                differs=fact_words(each.differs),
            )
            for each in seen.facts.retraces
            if each.callback == one.name
        ]
        told += dict.fromkeys(traced)
        yield Draft(
            cause=name,
            evidence=tuple(told),
            place=one.place,
            gain=amdahl(whole_s, cost_s, cause(name).removes),
            values={
                "name": named(one.name),
                "share": percent(cost_s / whole_s),
                "when": _when(seen, one),
            },
        )


def _all(seen: Seen) -> tuple[CallbackFacts, ...]:
    """Return all callbacks, and what no single one of them accounts for."""
    known = seen.facts.callbacks
    rest_s = seen.facts.callback_s - sum(one.per_step_s for one in known)
    if rest_s <= seen.split.floor_s:
        return known
    name = "callbacks" if not known else "other callbacks"
    return (*known, CallbackFacts(name=name, per_step_s=rest_s))


def _cost_s(seen: Seen, one: CallbackFacts) -> float:
    """Return seconds for each step; what an epoch costs is spread over its steps."""
    steps = seen.facts.steps_per_epoch
    return max(0.0, one.per_step_s) + (max(0.0, one.per_epoch_s) / steps if steps else 0.0)


def _beside_s(seen: Seen) -> float:
    """Return seconds a step beside the typical step: of epochs, of every n-th step."""
    parts = seen.split.parts_s
    inside_s = parts["callback"] + parts["validation"] + parts["checkpoint"]
    return max(0.0, sum(_cost_s(seen, one) for one in _all(seen)) - inside_s)


def _cause(one: CallbackFacts) -> str:
    known = (f"callback.{name}" for kind, name in _KINDS if matching(kind, [one.name]))
    return next(known, "callback.slow_callback")


def _when(seen: Seen, one: CallbackFacts) -> str:
    steps = seen.facts.steps_per_epoch
    per_epoch_s = one.per_epoch_s / steps if steps else 0.0
    return "step" if one.per_step_s >= per_epoch_s else "epoch"


def between_epochs(seen: Seen) -> Iterator[Draft]:
    """Find ends of epochs and checkpoints of ``tfdyno train`` that take a good part."""
    facts = seen.facts
    if not facts.steps_per_epoch:
        return
    rows = (
        ("host.epoch_ends", "unseen", facts.epoch_ends_s, say("from the last step of an epoch on")),
        (
            "host.train_checkpoints",
            "checkpoint",
            facts.epoch_saves_s,
            say("waiting for checkpoints of tfdyno train"),
        ),
    )
    least_s = max(limits()["least_part_ratio"] * seen.step_s, seen.split.spread_s)
    for name, part, epoch_s, what in rows:
        cost_s = min(epoch_s / facts.steps_per_epoch, seen.split.parts_s[part])
        if cost_s <= 0.0 or cost_s < least_s:
            continue
        yield taking(
            seen,
            name,
            cost_s,
            evidence(
                "{what}: {epoch} in each epoch of {steps:,} steps",
                "the record",
                what=what,
                epoch=duration(epoch_s),
                steps=facts.steps_per_epoch,
            ),
        )


CALLBACK_RULES = (slow_callbacks, between_epochs)
