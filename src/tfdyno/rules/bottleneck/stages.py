"""How fast each stage of an input pipeline is by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.measure.bottleneck import StageSpeed
from tfdyno.rules.bottleneck.seen import samples_of_step, stage_walls
from tfdyno.rules.bottleneck.tables import limits

if TYPE_CHECKING:
    from tfdyno.rules.bottleneck.seen import Seen


def stage_speeds(seen: Seen) -> tuple[StageSpeed, ...]:
    """Every stage with its share of the time of a batch, and the rate that it alone would allow.

        rate = samples of a batch / (time of a batch * share of the stage)

    Empty where no stage was timed: a share that is guessed is no measurement.
    """
    given, batch_s = seen.facts.input, seen.split.batch_s
    if given is None or not batch_s or not any(one.own_s > 0.0 for one in given.stages):
        return ()
    samples = samples_of_step(seen)
    least_s = limits()["told_stage_ratio"] * batch_s
    walls_s = stage_walls(given, batch_s, seen.cpus)
    return tuple(
        StageSpeed(
            title=one.title,
            place=one.place,
            batch_s=wall_s,
            samples_per_s=samples / wall_s if wall_s > least_s else 0.0,
            bytes_per_s=one.output_bytes / wall_s if wall_s > least_s else 0.0,
        )
        for one, wall_s in zip(given.stages, walls_s, strict=True)
    )
