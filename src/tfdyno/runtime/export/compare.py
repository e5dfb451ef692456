"""Outputs of a model and of its export side by side, batch by batch. Needs numpy only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.base.errors import ToolError
from tfdyno.core.deploy.export import CLEAR_LEAD_RATIO, Accuracy, Difference

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    Arrays = dict[str, np.ndarray]
    Run = Callable[[Arrays], Arrays]

_PROBABILITY, _LOGIT = 0.5, 0.0
"""The score above which a single one names class 1."""


def filled(run: Run, size: int) -> Run:
    """Make what takes ``size`` rows at once and no other number take fewer rows.

    The last row is repeated, and what comes of the repetitions is left out.
    """

    def whole(inputs: Arrays) -> Arrays:
        rows = len(next(iter(inputs.values())))
        if rows == size:
            return run(inputs)
        lacking = size - rows
        given = {n: np.concatenate([a, np.repeat(a[-1:], lacking, axis=0)])
                 for n, a in inputs.items()}  # fmt: skip
        found = run(given)
        return {n: a[:rows] if a.shape[:1] == (size,) else a for n, a in found.items()}

    return whole


def classes(scores: np.ndarray, *, threshold: float = _PROBABILITY) -> np.ndarray:
    """Return the class of each row of scores; of a single score, whether it is above a threshold.

    Whole numbers are classes already.
    """
    if scores.dtype.kind in "iu":
        return scores
    if scores.shape[-1] > 1:
        return np.argmax(scores, axis=-1)
    return (scores[..., 0] > threshold).astype(int)


def named(scores: np.ndarray) -> np.ndarray:
    """Return which rows name a class at all: one whose largest score is NaN or infinite names none.

    A score of minus infinity beside finite ones is how models rule a class out.
    """
    if scores.dtype.kind in "iu":
        return np.ones(scores.shape, bool)
    return np.asarray(np.isfinite(scores.max(axis=-1)))


def clear(scores: np.ndarray, *, threshold: float = _PROBABILITY) -> np.ndarray:
    """Mark rows whose class leads by over ``CLEAR_LEAD_RATIO`` of the largest score (1 at least).

    A single score leads by how far it is from the threshold, a whole number always.
    """
    if scores.dtype.kind in "iu":
        return np.ones(scores.shape, bool)
    sizes = np.abs(np.where(np.isfinite(scores), scores, 0.0)).max(axis=-1)
    if scores.shape[-1] > 1:
        second, first = np.moveaxis(np.partition(scores, -2, axis=-1)[..., -2:], -1, 0)
        with np.errstate(invalid="ignore"):
            lead = first - second
    else:
        lead = np.abs(scores[..., 0] - threshold)
    return named(scores) & (lead > CLEAR_LEAD_RATIO * np.maximum(1.0, sizes))


def are_logits(scores: np.ndarray) -> bool:
    """Return whether a model's own single scores are no probabilities: one lies outside 0–1."""
    if scores.dtype.kind in "iu" or scores.shape[-1] != 1:
        return False
    finite = scores[np.isfinite(scores)]
    return bool(finite.size and (finite.min() < 0.0 or finite.max() > 1.0))


def names_classes(scores: np.ndarray, *, known: bool) -> bool:
    """Return whether the rows of an output can be compared by the class that each names.

    Args:
        scores: Rows of the output.
        known: Whether the data has its classes. Only then a whole number is a class and no
            amount, and a single score one of two classes.
    """
    if known and scores.dtype.kind in "iu":
        return True
    return scores.dtype.kind == "f" and scores.ndim >= 2 and (known or scores.shape[-1] >= 2)


class Judge:
    """Collects what one batch after another gives on both sides."""

    def __init__(
        self,
        outputs: tuple[str, ...],
        judged: str = "",
        truth: object = None,
        amounts: Collection[str] = (),
    ) -> None:
        """Begin with nothing seen.

        Args:
            outputs: Names of the model's outputs.
            judged: The one that classes are known for; empty: none.
            truth: The class of every row.
            amounts: Outputs that the data has other targets for: they name no class.
        """
        self.sides = {
            name: Comparing(name, known=name == judged, amount=name in amounts) for name in outputs
        }
        self.judged, self.truth = judged, np.asarray(truth) if judged else np.zeros(0)
        self.right: dict[float, list[int]] = {at: [0, 0] for at in (_PROBABILITY, _LOGIT)}
        self.threshold = _PROBABILITY
        self.seen: list[np.ndarray] = []

    def add(self, first: int, expected: Mapping[str, object], got: Mapping[str, object]) -> None:
        """Add one batch, whose first row is number ``first``; raises ``ToolError``."""
        if set(got) != set(expected):
            raise ToolError("the export has other outputs",
                            why=f"{', '.join(got)} in place of {', '.join(expected)}")  # fmt: skip
        for name, side in self.sides.items():
            side.add(np.asarray(expected[name]), np.asarray(got[name]))
        if not self.judged:
            return
        pair = [np.asarray(side[self.judged]) for side in (expected, got)]
        rows = self.truth[first : first + len(pair[0])]
        if are_logits(pair[0]):
            self.threshold = _LOGIT
        counts = named(pair[0])
        self.seen.append(rows[counts])
        for threshold, right in self.right.items():
            for number, scores in enumerate(pair):
                is_right = (classes(scores, threshold=threshold) == rows) & named(scores)
                right[number] += int(np.sum(is_right & counts))

    def differences(self) -> tuple[Difference, ...]:
        """Return those of every output."""
        return tuple(side.found() for side in self.sides.values())

    def accuracy(self) -> Accuracy | None:
        """Return the accuracy of the output with known classes; None: there is none, or no row."""
        seen = np.concatenate(self.seen, axis=None) if self.seen else np.zeros(0)
        if not seen.size:
            return None
        before, after = (right / seen.size for right in self.right[self.threshold])
        _, counts = np.unique(seen, return_counts=True)
        return Accuracy(
            output=self.judged,
            rows=seen.size,
            before_ratio=before,
            after_ratio=after,
            commonest_ratio=float(counts.max()) / seen.size,
        )


class Comparing:
    """Differences of one output, batch by batch."""

    def __init__(self, name: str, *, known: bool = False, amount: bool = False) -> None:
        """Begin with nothing seen.

        Args:
            name: Of the output.
            known: Whether the data has its classes.
            amount: Whether the data has targets for it that are no classes.
        """
        self.name, self.known, self.amount = name, known, amount
        self.first: np.ndarray | None = None
        self.varies = False
        self.max_abs = self.sum_abs = self.largest = 0.0
        self.count = self.rows = self.finite = 0
        self.same = dict.fromkeys((_PROBABILITY, _LOGIT), 0)
        self.clear = {at: [0, 0] for at in self.same}
        """Rows that are clear, and those of them with the same class."""
        self.threshold = _PROBABILITY

    def add(self, before: np.ndarray, after: np.ndarray) -> None:
        """Add one more batch; raises ``ToolError`` where the shapes differ."""
        if before.shape != after.shape:
            raise ToolError(f"the export gives another shape for {self.name}",
                            why=f"{after.shape} in place of {before.shape}")  # fmt: skip
        if before.ndim and len(before):
            self.first = before[0] if self.first is None else self.first
            self.varies = self.varies or not np.all(before == self.first)
        if before.dtype.kind in "OSU":
            unlike = float(np.sum(before.astype(str) != _texts(after)))
            self.max_abs, self.sum_abs = max(self.max_abs, min(unlike, 1.0)), self.sum_abs + unlike
            self.count += before.size
            self.finite += before.size
            return
        a, b = before.astype(np.float64), after.astype(np.float64)
        equal = (a == b) | (np.isnan(a) & np.isnan(b))
        with np.errstate(invalid="ignore"):
            apart = np.where(equal, 0.0, np.abs(a - b))
        apart = np.where(np.isnan(apart), np.inf, apart)
        finite = np.abs(a[np.isfinite(a)])
        self.max_abs = max(self.max_abs, float(apart.max(initial=0.0)))
        self.sum_abs += float(apart.sum())
        self.largest = max(self.largest, float(finite.max(initial=0.0)))
        self.count += a.size
        self.finite += finite.size
        if not self.amount and names_classes(before, known=self.known):
            if are_logits(before):
                self.threshold = _LOGIT
            counts = named(before)
            for at in self.same:
                alike = classes(before, threshold=at) == classes(after, threshold=at)
                alike &= counts & named(after)
                is_clear = clear(before, threshold=at)
                self.same[at] += int(alike.sum())
                self.clear[at][0] += int(is_clear.sum())
                self.clear[at][1] += int((alike & is_clear).sum())
            self.rows += int(counts.sum())

    def found(self) -> Difference:
        """Return all batches so far."""
        relative = self.max_abs / self.largest if self.largest else float(self.max_abs > 0)
        clear_rows, clear_same = self.clear[self.threshold]
        return Difference(
            output=self.name,
            max_abs=self.max_abs,
            mean_abs=self.sum_abs / max(self.count, 1),
            max_relative_ratio=relative,
            largest_abs=self.largest,
            varies=self.varies,
            not_finite_ratio=1.0 - self.finite / self.count if self.count else 0.0,
            top1_ratio=self.same[self.threshold] / self.rows if self.rows else None,
            clear_top1_ratio=clear_same / clear_rows if clear_rows else None,
        )


def _texts(array: np.ndarray) -> np.ndarray:
    return np.array([one.decode() if isinstance(one, bytes) else str(one) for one in array.flat],
                    dtype=str).reshape(array.shape)  # fmt: skip
