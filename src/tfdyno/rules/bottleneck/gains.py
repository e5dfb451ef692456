"""How much faster a step gets when a fix takes part of it away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.measure.bottleneck import Gain
from tfdyno.rules.bottleneck.tables import limits

if TYPE_CHECKING:
    from tfdyno.rules.bottleneck.seen import Seen
    from tfdyno.rules.bottleneck.tables import Shares


def amdahl(whole_s: float, part_s: float, removes: Shares) -> Gain:
    """Return the gain of taking shares of one part of the step away.

        gain = whole / (whole - share * part)

    Args:
        whole_s: All of the step, above 0; with stalls where the part is one.
        part_s: What the fix works on, at most ``whole_s``.
        removes: Low, best and high share of that part that goes.

    Source:
        Amdahl, "Validity of the single processor approach", AFIPS 1967.
    """
    low, best, high = (_gain(whole_s, min(part_s, whole_s) * share) for share in removes)
    return Gain(low=low, best=best, high=high)


def saving(whole_s: float, low_s: float, best_s: float, high_s: float) -> Gain:
    """Return the gain of saving so many seconds of a step; they are put in order."""
    low, best, high = sorted((low_s, best_s, high_s))
    return Gain(low=_gain(whole_s, low), best=_gain(whole_s, best), high=_gain(whole_s, high))


def _gain(whole_s: float, saved_s: float) -> float:
    """Return the gain, at most 50 times: what is left of a step is never known to be nothing."""
    most = limits()["most_gain"]
    left_s = max(whole_s - max(0.0, saved_s), whole_s / most)
    return whole_s / left_s if whole_s > 0.0 else 1.0


def without_wait(seen: Seen, batch_s: float, *, ahead: bool, less_work: bool = False) -> Gain:
    """Return the gain of a pipeline that takes ``batch_s`` by itself.

    With batches made ahead a step takes the longer of its own rest and of the batch, else both
    together. Work that only moves to other CPUs needs these CPUs: where the whole step keeps a
    share ``u`` of all of them busy, it cannot get shorter than ``u`` times what it is.

    Args:
        seen: The step, with its split.
        batch_s: Of the pipeline alone after the fix.
        ahead: Whether it runs ahead of the step after the fix.
        less_work: The fix takes work away, rather than doing it at another time.
    """
    step_s, waits_s = seen.step_s, seen.split.parts_s["input"]
    rest_s = step_s - waits_s
    new_s = max(rest_s, batch_s) if ahead else rest_s + min(batch_s, waits_s)
    busy_ratio = 0.0 if less_work else min(1.0, seen.facts.host.cpu_ratio)
    best_s = min(waits_s, step_s - max(new_s, busy_ratio * step_s))
    high_s = min(waits_s, step_s - new_s)
    return saving(step_s, limits()["sure_share_of_wait"] * max(0.0, best_s), best_s, high_s)


def with_less_work(seen: Seen, part_s: float, removes: Shares, *, ahead: bool) -> Gain:
    """Return the gain of taking shares of the work of some stages away from the pipeline.

    Args:
        seen: The step, with its split.
        part_s: Seconds of a batch of the pipeline alone that these stages account for.
        removes: Low, best and high share of them that goes.
        ahead: Whether the pipeline runs ahead of the step after the fix.
    """
    batch_s = seen.split.batch_s
    least, expected, most = (
        without_wait(seen, batch_s - part_s * share, ahead=ahead, less_work=True)
        for share in sorted(removes)
    )
    return Gain(low=least.low, best=expected.best, high=most.high)
