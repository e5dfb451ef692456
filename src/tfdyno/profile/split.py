"""Where the time of the steps in a profile went; the parts add up to the steps."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.measure.bottleneck import SPLIT_PARTS
from tfdyno.core.measure.step_facts import OperationFacts, StallFacts, TimelineFacts
from tfdyno.profile.operation_classes import EXCHANGE
from tfdyno.profile.operations import class_seconds, operations_of
from tfdyno.profile.spans import Pieces, Spans, cut, merged, per_step, run_lengths
from tfdyno.profile.tables import limit
from tfdyno.profile.timeline import longest, timeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tfdyno.profile.device import Events
    from tfdyno.profile.steps import Steps

    Times = NDArray[np.float64]
    Chosen = NDArray[np.bool_]

_ORDER = (
    ("compute", "compute"), ("collective", "communication"), ("copy", "copy"), ("input", "input"),
    ("checkpoint", "checkpoint"), ("validation", "validation"), ("callback", "callback"),
    ("retrace", "retrace"), ("python", "host"),
)  # fmt: skip
"""What a moment counts as, the first that applies, and the part of the split that it is in. What
the device does hides what the host does; what nothing hides is exposed."""
_OF_STALLS = ("input", "callback", "validation", "checkpoint", "retrace")
"""Parts that make single steps long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Per steady step, in seconds."""

    step_s: Times
    """The time of each steady step."""
    parts_s: dict[str, float]
    """The time by ``SPLIT_PARTS``; they add up to the mean of ``step_s``."""
    operations: OperationFacts
    outlier_count: int
    edges_s: Times
    is_steady: Chosen
    timeline: TimelineFacts


def device_edges(steps: Steps, events: Events) -> Times:
    """Return when the device began each step; a host runs ahead, so its own times don't do.

    A step of the device begins with the first operation that the host started in that step. Steps
    in which the host started none are joined to the one before.
    """
    chosen = events.is_compute
    step = np.searchsorted(steps.edges_s, events.launched_s[chosen], side="right") - 1
    begin = events.begin_s[chosen]
    inside = step >= 0
    step, begin = step[inside], begin[inside]
    first = np.full(steps.edges_s.size, np.inf)
    np.minimum.at(first, step, begin)
    first = first[np.isfinite(first)]
    if not first.size:
        return first
    edges = first[np.concatenate(([True], first[1:] > np.maximum.accumulate(first)[:-1]))]
    if steps.edges_s.size == 2 and edges.size:
        return np.array([edges[0], max(steps.edges_s[1], float(events.end_s.max()))])
    return edges


def split(edges_s: Times, events: Events, host: Mapping[str, Spans]) -> Split:
    """Tell for every moment of every step what it was spent on.

    A pause of the device in which the host waits for data is input; in which it runs Python, saves
    or calls back is that; any other one is the start of the next operation where it is short, and
    the host's where it is long (``data/profile_limits.csv``).

    Args:
        edges_s: Where steps begin and the last one ends, at least two.
        events: Of the busiest device.
        host: What the host was seen doing.
    """
    device = {
        "compute": _union(events, events.is_compute),
        "collective": _union(events, events.of(*EXCHANGE)),
        "copy": _union(events, events.of("copy")),
    }
    pieces = cut(edges_s, {**host, **device})
    label = _labels(pieces)
    step_s = np.diff(edges_s)
    steady = step_s <= limit("outlier_ratio") * np.median(step_s)
    steady_piece = steady[np.searchsorted(edges_s, pieces.begin_s, side="right") - 1]

    def mean(chosen: Chosen) -> float:
        return float(per_step(pieces, chosen, edges_s)[steady].mean())

    parts = {part: mean(label == part) for part in SPLIT_PARTS}
    hidden = pieces.inside["collective"] & pieces.inside["compute"] & steady_piece
    return Split(
        step_s=step_s[steady],
        parts_s=parts,
        operations=_operations(events, edges_s, steady, parts, mean(hidden)),
        outlier_count=int((~steady).sum()),
        edges_s=edges_s,
        is_steady=steady,
        timeline=_timeline(step_s, {part: per_step(pieces, label == part, edges_s)
                                    for part in _OF_STALLS}),
    )  # fmt: skip


def _timeline(step_s: Times, parts_s: Mapping[str, Times]) -> TimelineFacts:
    whole_s = step_s.tolist()
    inside = {f"{part}_s": each_s.tolist() for part, each_s in parts_s.items()}
    steps = [
        StallFacts(
            step=place + 1,
            whole_s=one_s,
            **{name: each_s[place] for name, each_s in inside.items()},
        )
        for place, one_s in enumerate(whole_s)
    ]
    return timeline(whole_s, [1] * len(whole_s), longest(steps))


def _union(events: Events, chosen: Chosen) -> Spans:
    return merged(events.begin_s[chosen], events.end_s[chosen])


def _labels(pieces: Pieces) -> NDArray[np.str_]:
    label = np.full(pieces.begin_s.size, "", dtype="<U16")
    for kind, part in _ORDER:
        inside = pieces.inside.get(kind)
        if inside is not None:
            label[inside & (label == "")] = part
    pause = label == ""
    long = run_lengths(pieces.length_s, pause) > limit("long_gap_s")
    label[pause & long] = "host"
    label[pause & ~long] = "launch"
    return label


def _operations(
    events: Events, edges_s: Times, steady: Chosen, parts: dict[str, float], hidden_s: float
) -> OperationFacts:
    """Return those of steady steps; computing is brought to the time in which it hides all else."""
    step = np.searchsorted(edges_s, events.begin_s, side="right") - 1
    inside = (step >= 0) & (step < steady.size)
    inside[inside] = steady[step[inside]]
    counted = inside & ~events.of("python", "checkpoint")
    count = float(steady.sum())
    computed = class_seconds(events, inside & events.is_compute, count)
    factor = parts["compute"] / (sum(computed.values()) or 1.0)
    return dataclasses.replace(
        operations_of(events, counted, count),
        class_s={name: each_s * factor for name, each_s in computed.items()},
        collective_exposed_s=parts["communication"],
        collective_hidden_s=hidden_s,
    )
