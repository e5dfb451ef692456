"""The stages of a pipeline that the step waits for, with the time that each accounts for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.measure.step_facts import StageFacts
from tfdyno.rules.bottleneck.draft import Draft, duration, evidence, of_step, percent
from tfdyno.rules.bottleneck.seen import reads, stage_walls, waits_itself
from tfdyno.rules.bottleneck.tables import limits, matching
from tfdyno.words.base.language import say, say_later

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.doctor.finding import Evidence
    from tfdyno.core.measure.bottleneck import Gain
    from tfdyno.core.measure.step_facts import InputFacts
    from tfdyno.rules.bottleneck.seen import Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One stage of the pipeline by itself."""

    place: int
    """0: the first of the sources."""
    stage: StageFacts
    wall_s: float
    """Seconds of a batch that it accounts for."""


def timed(seen: Seen, given: InputFacts) -> tuple[Timed, ...]:
    """Return all stages in their order."""
    walls = stage_walls(given, seen.split.batch_s, seen.cpus)
    pairs = enumerate(zip(given.stages, walls, strict=True))
    return tuple(Timed(place=n, stage=stage, wall_s=wall) for n, (stage, wall) in pairs)


def heavy(seen: Seen, given: InputFacts) -> tuple[Timed, ...]:
    """Return stages that account for a good part of the pipeline, the longest first."""
    least_s = limits()["stage_ratio"] * seen.split.batch_s
    found = [one for one in timed(seen, given) if one.wall_s >= least_s > 0.0]
    return tuple(sorted(found, key=lambda one: -one.wall_s))


def reading_s(seen: Seen, given: InputFacts) -> float:
    """Return seconds of a batch in stages that read files.

    A stage that decodes as well is one of them only where the pipeline waits more than it
    computes.
    """
    waits = waits_itself(seen, given)
    return sum(
        one.wall_s
        for one in timed(seen, given)
        if reads(one.stage) and (waits or not matching("decode", one.stage.operations))
    )


def found(
    seen: Seen,
    cause: str,
    gain: Gain,
    *more: Evidence,
    one: Timed | None = None,
    values: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
) -> Draft:
    """Return a finding about the input: the waiting and the stage are its evidence."""
    batch_s = seen.split.batch_s
    told = [
        evidence(
            "waiting for data: {part}",
            _steps(seen),
            part=of_step(seen, seen.split.parts_s["input"]),
        )
    ]
    if batch_s:
        inner = (
            say(", the step without it {held}", held=duration(seen.split.held_s))
            if seen.split.held_s
            else ""
        )
        told.append(
            evidence(
                "the pipeline by itself takes {batch} a batch{inner}",
                "the pipeline and the step, each by itself",
                batch=duration(batch_s),
                inner=inner,
            )
        )
    if one is not None and batch_s:
        told.append(
            evidence(
                "{stage}: {share} of the pipeline",
                "stages of the pipeline",
                stage=one.stage.title,
                share=percent(one.wall_s / batch_s),
            )
        )
    stage = {"stage": one.stage.title, "place": one.stage.place} if one else {}
    return Draft(
        cause=cause,
        evidence=(*told, *more),
        gain=gain,
        values={
            "wait": percent(seen.split.parts_s["input"] / seen.step_s),
            **stage,
            **(values or {}),
        },
        settings=settings,
        place=one.stage.place if one else "",
    )


def _steps(seen: Seen) -> str:
    kind = {
        "run": say_later("steps of fit"),
        "loop": say_later("steps of the loop"),
        "profile": say_later("the profile"),
        "record": say_later("what was recorded"),
    }
    return kind[seen.facts.source]
