"""How steps went one after the other, in words and small marks: their course, stalls, stages."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.words.base.amounts import listed, plural
from tfdyno.words.base.language import say, say_later
from tfdyno.words.bench.measurement import seconds_words
from tfdyno.words.diagnose.told import fact_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.bottleneck import StageSpeed
    from tfdyno.core.measure.step_facts import StallFacts, TimelineFacts

MARKS = "▁▂▃▄▅▆▇█"
MOST_STALLS = 3
_PARTS = (
    ("validation_s", say_later("validation")),
    ("checkpoint_s", say_later("saving")),
    ("retrace_s", say_later("tracing")),
    ("callback_s", say_later("callbacks")),
    ("input_s", say_later("waiting for data")),
)
KINDS = (
    *(words for _, words in _PARTS),
    say_later("start of an epoch"),
    say_later("nothing that was timed"),
)
"""What a stall may be, in the order of a key; each is to be said."""
_LEAST_SHARE = 0.15
"""The share of a stall below which a part is not named."""


def sparkline(values: Sequence[float], columns: int) -> str:
    """Return one mark for each stretch of values, as high as its greatest; the axis begins at 0."""
    if not values or columns < 1:
        return ""
    count = min(columns, len(values))
    edges = [round(at * len(values) / count) for at in range(count + 1)]
    highs = [max(values[a:b]) for a, b in pairwise(edges)]
    most = max(highs) or 1.0
    return "".join(MARKS[min(7, int(8 * high / most))] for high in highs)


def ends(timeline: TimelineFacts) -> list[int]:
    """Return steps that are done at the end of each value."""
    return list(accumulate(timeline.steps_each or [1] * len(timeline.whole_s)))


def highs(timeline: TimelineFacts) -> list[float]:
    """Return the value of each place, or the longest stall in it where that is more."""
    found, last = list(timeline.whole_s), ends(timeline)
    for one in timeline.stalls:
        place = min(bisect_left(last, one.step), len(found) - 1)
        found[place] = max(found[place], one.whole_s)
    return found


def step_count(timeline: TimelineFacts) -> int:
    """Return steps of the whole course."""
    return sum(timeline.steps_each) or len(timeline.whole_s)


def range_words(timeline: TimelineFacts) -> str:
    """Write ``60 steps of 411 ms to 1.2 s``, those told by themselves included."""
    lows = min(timeline.whole_s)
    high = max([*timeline.whole_s, *(one.whole_s for one in timeline.stalls)])
    first, last = seconds_words(lows), seconds_words(high)
    times = say("{low} to {high}", low=first, high=last) if first != last else first
    each = say("{steps} of {times}", steps=plural(step_count(timeline), "step"), times=times)
    return (
        say("{each} ({what})", each=each, what=fact_words(timeline.what)) if timeline.what else each
    )


def stall_kind(one: StallFacts) -> str:
    """Return what took most of it; one of ``KINDS``."""
    seconds_s, kind = max((getattr(one, name), words) for name, words in _PARTS)
    if seconds_s >= _LEAST_SHARE * one.whole_s:
        return kind
    return KINDS[-2] if one.is_first_of_epoch else KINDS[-1]


def stall_words(one: StallFacts) -> str:
    """Write ``step 31 took 1.2 s: validation 1.1 s``."""
    said, took = stall_parts(one), seconds_words(one.whole_s)
    if one.steps > 1:
        return say(
            "steps {first:,}–{last:,} took {took} each: {said}",
            first=one.step - one.steps + 1,
            last=one.step,
            took=took,
            said=said,
        )
    return say("step {step:,} took {took}: {said}", step=one.step, took=took, said=said)


def stall_parts(one: StallFacts) -> str:
    """Write what was in it: ``validation 1.1 s``."""
    parts = sorted(((getattr(one, name), words) for name, words in _PARTS), reverse=True)
    found = [f"{say(words)} {seconds_words(seconds_s)}" for seconds_s, words in parts
             if seconds_s >= _LEAST_SHARE * one.whole_s]  # fmt: skip
    first = [say("the first of an epoch")] if one.is_first_of_epoch else []
    return listed([*found, *first]) if found or first else say("not known why")


def longest_stalls(timeline: TimelineFacts, most: int = MOST_STALLS) -> list[StallFacts]:
    """Return the longest ones, the longest first."""
    return sorted(timeline.stalls, key=lambda one: -one.whole_s)[:most]


def told_stages(stages: Sequence[StageSpeed]) -> list[StageSpeed]:
    """Return stages that take long enough to be told, in their order."""
    return [one for one in stages if one.samples_per_s > 0]


def rate_words(samples_per_s: float) -> str:
    """Write ``1,070 samples/s``."""
    return say("{rate} samples/s", rate=significant(samples_per_s))


def bytes_rate_words(bytes_per_s: float) -> str:
    """Write ``12.3 MB/s``; empty where the size is not known."""
    return f"{significant(bytes_per_s / 1e6)} MB/s" if bytes_per_s > 0 else ""
