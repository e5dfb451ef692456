"""Graph mode's memory against TensorFlow's own allocator, as ``truth/own`` keeps the scores."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass
from fnmatch import fnmatchcase
from statistics import fmean, median
from typing import TYPE_CHECKING

from tfdyno_truth.rows import TRUTH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

SCORES = TRUTH / "own" / "graph_memory_scores.csv"
REASONS = TRUTH / "own" / "graph_memory_reasons.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One measured step."""

    model: str
    mode: str
    policy: str
    batch_size: int
    part: str
    """Whether the rules of the estimate were worked out on it: ``tuned``, ``seen once``,
    ``held out``."""
    error: float
    """(Predicted - measured) / measured of the tensors' peak."""
    reason: str
    """Why it is off; empty where that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The error of some steps."""

    label: str
    steps: int
    mean: float
    median: float
    within: float
    """Share of the steps inside the range that an estimate gives (``peak_graph``)."""


def read_steps(scores: Path = SCORES, reasons: Path = REASONS) -> tuple[Step, ...]:
    """All measured steps, the worst first."""
    with reasons.open(newline="", encoding="utf-8") as file:
        known = [(raw["model"], raw["reason"]) for raw in csv.DictReader(file)]
    with scores.open(newline="", encoding="utf-8") as file:
        found = [_step(raw, known) for raw in csv.DictReader(file)]
    return tuple(sorted(found, key=lambda step: -abs(step.error)))


def parts(steps: Iterable[Step], low: float, high: float) -> Iterator[Part]:
    """All steps, then those of every part.

    Args:
        steps: What was measured.
        low: Lower end of the estimate's range over its best figure.
        high: Upper end.
    """
    known = tuple(steps)
    by_part: defaultdict[str, list[Step]] = defaultdict(list)
    for step in known:
        by_part[step.part].append(step)
    for label, mine in (("all", known), *by_part.items()):
        errors = [abs(step.error) for step in mine]
        yield Part(
            label=label,
            steps=len(errors),
            mean=fmean(errors),
            median=median(errors),
            within=fmean(low <= 1.0 / (1.0 + step.error) <= high for step in mine),
        )


def _step(raw: dict[str, str], known: Iterable[tuple[str, str]]) -> Step:
    error, model = float(raw["tensor_peak_error"]), raw["model"]
    return Step(
        model=model,
        mode=raw["mode"],
        policy=raw["policy"],
        batch_size=int(raw["batch"]),
        part=raw["part"],
        error=error,
        reason=next((reason for name, reason in known if fnmatchcase(model, name)), ""),
    )
