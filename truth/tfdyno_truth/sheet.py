"""A score sheet: what one way of predicting is worth, TensorFlow first, strata worst first."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tfdyno_truth import judge
from tfdyno_truth.design import Design
from tfdyno_truth.judge import Order, Score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

FRAMEWORKS = {"tensorflow": "TensorFlow", "pytorch": "PyTorch"}
"""In the order of all tables: TensorFlow is what the tool is for."""
ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """Predictions of rows, ready to be scored."""

    design: Design
    main: NDArray[np.bool_]
    """Rows that count in the whole: neither launch-bound nor with fused attention."""
    predicted: NDArray[np.float64]
    """Seconds."""
    width: NDArray[np.float64]
    """Log half-width of every row's interval."""

    def within(self, chosen: NDArray[np.bool_]) -> Judged:
        """Only the chosen rows."""
        index = np.flatnonzero(chosen)
        return Judged(
            design=self.design.take(index),
            main=self.main[index],
            predicted=self.predicted[index],
            width=self.width[index],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The score of some rows."""

    label: str
    score: Score
    order: Order | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """All scores of one way; every list is worst first, but ``whole``."""

    whole: tuple[Line, ...]
    """TensorFlow, PyTorch, all; only those that have rows, ``all`` only beside both."""
    strata: dict[str, tuple[Line, ...]]
    """Framework -> its strata, also those that do not count in the whole."""
    chips: tuple[Line, ...]
    architectures: tuple[Line, ...]


def sheet(judged: Judged) -> Sheet:
    """Score predictions."""
    rows, main, of = judged.design.rows, judged.main, _by_framework(judged)
    return Sheet(
        whole=whole(judged),
        strata={
            FRAMEWORKS[name]: _worst_first(judged, mine, lambda i: stratum(judged.design, i))
            for name, mine in of.items()
        },
        chips=_worst_first(judged, main, lambda i: rows[i].chip),
        architectures=_worst_first(judged, main, lambda i: rows[i].architecture),
    )


def whole(judged: Judged) -> tuple[Line, ...]:
    """TensorFlow, PyTorch, all; only those that have rows, ``all`` only beside both."""
    of = _by_framework(judged)
    sets = [(FRAMEWORKS[name], judged.main & mine) for name, mine in of.items()]
    sets += [(ALL, judged.main)] if len(of) != 1 else []
    return tuple(
        _line(judged, label, chosen, ordered=True) for label, chosen in sets if chosen.any()
    )


def _by_framework(judged: Judged) -> dict[str, NDArray[np.bool_]]:
    """Frameworks that have rows -> their rows."""
    told = np.array([row.framework for row in judged.design.rows])
    return {name: told == name for name in FRAMEWORKS if name in told}


def stratum(design: Design, index: int) -> str:
    """Name of the stratum of a row inside its framework."""
    row = design.rows[index]
    return f"{row.apart or design.families[index]}, {row.mode}, {row.execution}"


def _worst_first(
    judged: Judged, chosen: NDArray[np.bool_], label: Callable[[int], str]
) -> tuple[Line, ...]:
    labels: defaultdict[str, list[int]] = defaultdict(list)
    for index in np.flatnonzero(chosen):
        labels[label(int(index))].append(int(index))
    lines = [_line(judged, name, _mask(judged, index)) for name, index in labels.items()]
    return tuple(sorted(lines, key=lambda line: -line.score.mean))


def _line(judged: Judged, label: str, chosen: NDArray[np.bool_], *, ordered: bool = False) -> Line:
    score = judge.score(judged.design, chosen, judged.predicted, judged.width)
    if score is None:
        raise ValueError(f"no rows to judge for {label}")
    found = judge.order(judged.design, chosen, judged.predicted) if ordered else None
    return Line(label=label, score=score, order=found)


def _mask(judged: Judged, index: Iterable[int]) -> NDArray[np.bool_]:
    mask = np.zeros(len(judged.design.rows), dtype=bool)
    mask[list(index)] = True
    return mask
