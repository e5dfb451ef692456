"""Whether two backends compute the same: first losses of all runs, from the same weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.core.measure.measurement import SameResults
from tfdyno.words.base.language import say
from tfdyno.words.bench.measurement import BACKENDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.measurement import FirstResults, Measurement

FLOAT32_RATIO = 2e-3
"""How far losses of the first five steps may lie apart. Own choice: on CPUs those of TensorFlow and
JAX differed by less than 2e-7; products in TF32, which both may choose on a card, keep 11 bits."""
MIXED_RATIO = 2e-2
"""The same in mixed_float16 and mixed_bfloat16, which keep 11 and 8 bits of every activation."""
_DIGITS = 5


def same_results(a: Measurement, b: Measurement) -> SameResults | None:
    """Compare what all runs of two backends gave at first.

        difference = (largest - least) / largest absolute value, of all runs after one step

    Returns:
        None: both sides ran on one backend, which needs no proof.
    """
    if a.task.backend == b.task.backend:
        return None
    allowed = FLOAT32_RATIO if {a.task.policy, b.task.policy} == {"float32"} else MIXED_RATIO
    first = [[run.first for run in side.runs] for side in (a, b)]
    if why := _why_none(a, b, first):
        return _not_proven(why, allowed)
    every = [*first[0], *first[1]]
    steps = [step for step in every[0].steps if all(step in one.steps for one in every)]
    if not steps:
        why = say("they told no loss after the same number of steps")
        return _not_proven(why, allowed)
    told = {step: [one.values[one.steps.index(step)] for one in every] for step in steps}
    apart = max(map(spread_ratio, told.values()))
    if apart <= allowed:
        return SameResults(
            kind="steps",
            difference_ratio=apart,
            tolerance_ratio=allowed,
            text=_proof_words(a, b, steps),
        )
    random = sorted({name for one in every for name in one.random_layers})
    rest = [one.evaluated for one in every]
    at_rest = [value for value in rest if value is not None]
    if random and len(at_rest) == len(every):
        return _at_rest(a, b, at_rest, random, allowed)
    return _not_proven(_apart_words(a, b, apart, allowed), allowed, apart)


def spread_ratio(values: Sequence[float]) -> float:
    """Return how far numbers lie apart, over the largest of them; 0.0 where all are 0."""
    scale = max(map(abs, values))
    return (max(values) - min(values)) / scale if scale else 0.0


def _why_none(a: Measurement, b: Measurement, first: list[list[FirstResults]]) -> str:
    """Return why there is nothing to compare; empty: there is."""
    if not a.session or a.session != b.session:
        return say("they were not measured in turns from the same weights")
    if a.task.batch_size != b.task.batch_size:
        return say(
            "their batches differ ({first:,} and {second:,})",
            first=a.task.batch_size,
            second=b.task.batch_size,
        )
    for side, found in ((a, first[0]), (b, first[1])):
        if not all(one.steps for one in found):
            return say(
                "a run on {backend} told no loss that is a number",
                backend=BACKENDS[side.task.backend],
            )
    return ""


def _not_proven(why: str, allowed: float, apart: float = 0.0) -> SameResults:
    return SameResults(
        kind="not_proven",
        difference_ratio=apart,
        tolerance_ratio=allowed,
        text=say("Nothing proves that both backends compute the same: {why}.", why=why),
    )


def _proof_words(a: Measurement, b: Measurement, steps: Sequence[int]) -> str:
    last = steps[-1]
    one, other = (_at(side, last) for side in (a, b))
    told = {
        "first": BACKENDS[a.task.backend], "second": BACKENDS[b.task.backend],
        "one": significant(one, _DIGITS), "other": significant(other, _DIGITS), "step": last,
    }  # fmt: skip
    if a.task.mode == "infer":
        return say(
            "Both backends give the same for the first batch from the same weights: its mean size "
            "is {one} on {first} and {other} on {second}.",
            **told,
        )
    return say(
        "Both backends learn the same from the same weights and batches: after step {step} the "
        "loss is {one} on {first} and {other} on {second}.",
        **told,
    )


def _at(side: Measurement, step: int) -> float:
    first = side.runs[0].first
    return first.values[first.steps.index(step)]


def _at_rest(
    a: Measurement,
    b: Measurement,
    at_rest: Sequence[float],
    random: Sequence[str],
    allowed: float,
) -> SameResults:
    """Judge by the loss without random numbers; ``at_rest`` has A's runs first."""
    apart = spread_ratio(at_rest)
    if apart > allowed:
        return _not_proven(_apart_words(a, b, apart, allowed), allowed, apart)
    text = say(
        "Their losses while training cannot be compared exactly: {layers} draws other random "
        "numbers on each backend. Without them the first batch has the loss {one} on {first} and "
        "{other} on {second}, from the same weights; their gradients were not compared.",
        layers=random[0],
        one=significant(at_rest[0], _DIGITS),
        first=BACKENDS[a.task.backend],
        other=significant(at_rest[len(a.runs)], _DIGITS),
        second=BACKENDS[b.task.backend],
    )
    return SameResults(kind="at_rest", difference_ratio=apart, tolerance_ratio=allowed, text=text)


def _apart_words(a: Measurement, b: Measurement, apart: float, allowed: float) -> str:
    found = say(
        "from the same weights their first losses lie {apart} % apart, and {allowed} % is allowed",
        apart=significant(100 * apart),
        allowed=significant(100 * allowed),
    )
    if a.protocol.data == "own" == b.protocol.data:
        found += say("; their batches may differ: --data synthetic gives both the same one")
    return found
