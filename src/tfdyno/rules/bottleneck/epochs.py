"""What a record has between epochs that is neither validation nor a callback of the user's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.bottleneck.draft import Draft, duration, evidence, percent
from tfdyno.rules.bottleneck.gains import amdahl
from tfdyno.rules.bottleneck.tables import cause, limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.rules.bottleneck.seen import Seen


def between_epochs(seen: Seen) -> Iterator[Draft]:
    """Find ends of epochs and checkpoints of ``tfdyno train`` that take a good part."""
    facts = seen.facts
    if not facts.steps_per_epoch:
        return
    rows = (
        ("host.epoch_ends", "unseen", facts.epoch_ends_s, "from the last step of an epoch on"),
        ("host.train_checkpoints", "checkpoint", facts.epoch_saves_s,
         "waiting for checkpoints of tfdyno train"),
    )  # fmt: skip
    least_s = max(limits()["least_part_ratio"] * seen.step_s, seen.split.spread_s)
    for name, part, epoch_s, what in rows:
        cost_s = min(epoch_s / facts.steps_per_epoch, seen.split.parts_s[part])
        if cost_s <= 0.0 or cost_s < least_s:
            continue
        text = f"{what}: {duration(epoch_s)} in each epoch of {facts.steps_per_epoch:,} steps"
        yield Draft(cause=name, evidence=(evidence(text, "the record"),),
                    gain=amdahl(seen.step_s, cost_s, cause(name).removes),
                    values={"share": percent(cost_s / seen.step_s)})  # fmt: skip


EPOCH_RULES = (between_epochs,)
