"""Words that the answers of ``tfdyno edge`` share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.words.base.amounts import plural, short_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.deploy.edge import EdgePort, EdgeTiming, EdgeVerdict, LatencyClass

CLASSES: dict[LatencyClass, str] = {
    "real_time": "real time (below 33 ms)",
    "interactive": "interactive (below 200 ms)",
    "batch": "to be waited for",
}
SHORT: dict[LatencyClass, str] = {
    "real_time": "real time", "interactive": "interactive", "batch": "slow",
}  # fmt: skip
BOUND = {
    "compute": "arithmetic", "memory_bandwidth": "memory bandwidth",
    "dispatch": "starting operators",
}  # fmt: skip
GUESSED = (
    "Times on devices are a roofline of their makers' figures at shares that LiteRT reaches; none "
    "was measured there."
)


MARK = "*"
"""The mark behind a device of which figures are unverified."""


def unverified_words(verdicts: Sequence[EdgeVerdict]) -> str:
    """Return how many devices have figures that nobody checked; empty: none."""
    count = sum(bool(one.unverified) for one in verdicts)
    if not count:
        return ""
    return (
        f"Figures of {plural(count, 'device')} are unverified ({MARK}): some or all of them were "
        "written down from memory and not held against a source."
    )


def threads_words(timing: EdgeTiming) -> str:
    """Write ``1 thread``, ``2 threads``."""
    return plural(timing.threads, "thread")


def span_words(bounds_s: tuple[float, float]) -> str:
    """Write ``1.2 ms to 3.4 ms``: two digits, as the guess is no better."""
    low, high = map(short_time, bounds_s)
    return f"{low} to {high}"


def class_words(verdict: EdgeVerdict) -> str:
    """Write its class, or the two between which it may be."""
    best, worst = SHORT[verdict.best_class], SHORT[verdict.latency_class]
    return worst if best == worst else f"{best} to {worst}"


def shape_words(port: EdgePort) -> str:
    """Write ``float32 [any, 28, 28, 1]``."""
    sizes = ["any" if i in port.open_axes else str(size) for i, size in enumerate(port.shape)]
    quantised = (
        f", value = {port.scale:.4g} × (q − {port.zero_point})".replace("− -", "+ ")
        if port.scale
        else ""
    )
    return f"{port.dtype} [{', '.join(sizes)}]{quantised}"
