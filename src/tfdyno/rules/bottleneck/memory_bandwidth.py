"""Operations of a card that move more bytes than they compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.bottleneck.compute import half_policy
from tfdyno.rules.bottleneck.draft import Draft, evidence, of_step, percent, taking
from tfdyno.rules.bottleneck.split import share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.doctor.finding import Evidence
    from tfdyno.rules.bottleneck.seen import Seen

_MOVING = ("elementwise", "normalisation", "reduction", "data_movement")


def moving_s(seen: Seen) -> float:
    """Return seconds of a step in operations whose time is that of their bytes."""
    return seen.split.parts_s["compute"] * share(seen.split.compute_s, *_MOVING)


def fusion(seen: Seen) -> Iterator[Draft]:
    """Find work XLA would keep in registers between operations; not measured to pay on CPUs."""
    facts, part_s, name = seen.facts, moving_s(seen), "memory_bandwidth.fusion"
    if facts.device != "gpu" or facts.execution != "graph" or facts.replica_count > 1:
        return
    if seen.counts(part_s):
        yield taking(seen, name, part_s, _told(seen, part_s))


def precision(seen: Seen) -> Iterator[Draft]:
    """Find work of half the bytes in half the bits."""
    policy, part_s, name = half_policy(seen), moving_s(seen), "memory_bandwidth.precision"
    if policy and seen.counts(part_s):
        yield taking(seen, name, part_s, _told(seen, part_s), values={"policy": policy},
                     settings={"precision": policy})  # fmt: skip


def channels(seen: Seen) -> Iterator[Draft]:
    """Find kernels that only turn the order of channels, for others that want it otherwise."""
    operations, name = seen.facts.operations, "memory_bandwidth.channels"
    if seen.facts.device != "gpu" or operations is None:
        return
    whole_s = sum(operations.class_s.values())
    part_s = seen.split.parts_s["compute"] * operations.layout_s / whole_s if whole_s else 0.0
    if seen.counts(part_s):
        yield taking(
            seen,
            name,
            part_s,
            evidence(
                "kernels that turn the order of channels: {part}",
                "profile",
                part=of_step(seen, part_s),
            ),
        )


def _told(seen: Seen, part_s: float) -> Evidence:
    return evidence(
        "elementwise, normalisation and copies: {share} of the step",
        "profile",
        share=percent(part_s / seen.step_s),
    )


MEMORY_BANDWIDTH_RULES = (fusion, precision, channels)
