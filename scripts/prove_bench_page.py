"""The proof of bench and compare as a Markdown page."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.core.measure.measurement import Comparison, Measurement, Verdict
from tfdyno.words.bench.measurement import seconds_words

if TYPE_CHECKING:
    from collections.abc import Sequence


FALSE_ALARMS_RATIO = 1 / 40
FOUND_RATIO = 19 / 20
AGREEMENT_RATIO = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Two measurements of the workload."""

    name: str
    """Of their files."""
    wanted: Verdict
    """What is true: ``no_difference``, or where a slowdown begins or ends, its direction."""
    comparison: Comparison
    doubts: tuple[str, ...]
    """Kinds of instability that either of them reported."""

    @property
    def change_ratio(self) -> float:
        """Distance of the ratio of throughputs from 1, up or down alike; 0: not comparable."""
        ratio = self.comparison.ratio
        return math.expm1(abs(math.log(ratio))) if ratio else 0.0

    @property
    def slowed(self) -> bool:
        """Whether one of the two is slowed."""
        return self.wanted != "no_difference"

    @property
    def right(self) -> bool:
        """Whether compare said what is true."""
        return self.comparison.verdict == self.wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """All that was measured."""

    slowdown_ratio: float
    """Injected sleep over the time of the other layers."""
    step_s: float
    first: Measurement
    same: tuple[Pairing, ...]
    slowed: tuple[Pairing, ...]

    @property
    def false_alarms(self) -> int:
        """A/A pairs that were called different."""
        return sum(not one.right for one in self.same)

    @property
    def found(self) -> int:
        """Slowdowns that were seen."""
        return sum(one.right for one in self.slowed)

    @property
    def agreeing(self) -> int:
        """Equal pairs whose ratio is within 3 % of 1."""
        return sum(one.comparison.ratio > 0 and one.change_ratio <= AGREEMENT_RATIO
                   for one in self.same)  # fmt: skip

    @property
    def holds(self) -> bool:
        """Whether alarms and slowdowns are as they should be; agreement depends on the machine."""
        return (
            self.false_alarms <= len(self.same) * FALSE_ALARMS_RATIO
            and self.found >= len(self.slowed) * FOUND_RATIO
            and all(one.comparison.ratio for one in (*self.same, *self.slowed))
        )


def page(proof: Proof) -> str:
    """What was done, the counts, the distribution, and every pair, worst first."""
    parts = [
        "# Proof of bench and compare",
        "Written by `scripts/prove_bench`. How the numbers are made: "
        "[the protocol](explanation/bench-protocol.md).",
        _setting(proof),
        _counts(proof),
    ]
    share = f"{100 * proof.slowdown_ratio:g} %"
    parts += ["## The same workload twice", _spread(proof.same), _table(proof.same)]
    parts += [f"## Slowed by {share}", _slowed(proof), _table(proof.slowed, aside=True)]
    return "\n\n".join(parts) + "\n"


def _setting(proof: Proof) -> str:
    place, protocol = proof.first.environment, proof.first.protocol
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {place.cpu_count} CPUs ({place.cpu}), "
        f"{format_bytes(place.memory_bytes)}, {place.system}, TensorFlow {place.tensorflow}, Keras "
        f"{place.keras}, tfdyno {place.tfdyno}. Workload: `tests/data/scripts/slowable.py`, batch "
        f"{proof.first.task.batch_size}, {seconds_words(proof.step_s)} a step. Each side: "
        f"{len(proof.first.runs)} fresh processes, {protocol.least_samples} samples and "
        f"{protocol.least_s:g} s of the steady state or more in each. The sides take turns, one "
        "run of each in every round, every second round backwards; each side is compared with "
        "every other, so that comparisons share sides."
    )


def _counts(proof: Proof) -> str:
    same, slowed = len(proof.same), len(proof.slowed)
    rows = [
        "| question | wanted | found |",
        "|---|---|---|",
        f"| the same twice: called different | at most 1 in 40 | {proof.false_alarms} of {same} |",
        f"| the same twice: within 3 % of each other | all | {proof.agreeing} of {same} |",
        f"| {100 * proof.slowdown_ratio:g} % of sleep in every step: found | at least 19 in "
        f"20 | {proof.found} of {slowed} |",
    ]
    return "\n".join(rows)


def _spread(pairs: Sequence[Pairing]) -> str:
    changes = sorted(one.change_ratio for one in pairs)
    shares = ((0.5, "half"), (0.9, "nine in ten"), (1.0, "all"))
    said = ", ".join(f"{words} within {100 * _at(changes, share):.2f} %" for share, words in shares)
    return f"Of {len(pairs)} ratios, {said} of 1."


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def _slowed(proof: Proof) -> str:
    ideal = 1.0 / (1.0 + proof.slowdown_ratio)
    changes = sorted(one.change_ratio for one in proof.slowed)
    return (
        f"A layer sleeps {100 * proof.slowdown_ratio:g} % of the time of the other layers in every "
        f"step: a ratio of {ideal:.3f} from plain to slow, {1 / ideal:.3f} back, less what "
        f"TensorFlow does meanwhile. Half of the {len(changes)} ratios are within "
        f"{100 * _at(changes, 0.5):.2f} % of 1, all but one in ten at least "
        f"{100 * _at(changes, 0.1):.2f} % away."
    )


def _table(pairs: Sequence[Pairing], *, aside: bool = False) -> str:
    """Worst first: the largest ratio where there is none, the smallest where there is one."""
    ordered = sorted(pairs, key=lambda one: one.change_ratio, reverse=not aside)
    rows = [
        f"| {one.name} | {one.comparison.ratio:.4f} | "
        f"{one.comparison.interval[0]:.4f}–{one.comparison.interval[1]:.4f} | "
        f"{one.comparison.verdict.replace('_', ' ')} | {', '.join(one.doubts) or '–'} |"
        for one in ordered
    ]
    head = ["| sides | ratio | 99 % interval | verdict | doubts |", "|---|---:|---|---|---|"]
    return "\n".join([*head, *rows])
