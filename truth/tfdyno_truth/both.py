"""The same measured rows predicted from the kernels of both routes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tfdyno.catalog.families import family_of
from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import time_model
from tfdyno.core.choose.time_model import BucketWidth
from tfdyno_truth import judge
from tfdyno_truth.design import Design, design_of
from tfdyno_truth.fit import fit, leave_out
from tfdyno_truth.judge import Score
from tfdyno_truth.records import path_of
from tfdyno_truth.rows import contradicted
from tfdyno_truth.sheet import ALL
from tfdyno_truth.ways import WAYS, folds
from tfdyno_truth.widths import row_widths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from tfdyno_truth.rows import Row

Floats = NDArray[np.float64]

SERVING = "8.x"
"""The family whose compiled program stands in for others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Scores of both routes on the same rows."""

    label: str
    quick: Score
    compiled: Score

    @property
    def points(self) -> float:
        """How many points the quick route's mean error is higher."""
        return 100.0 * (self.quick.mean - self.compiled.mean)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Constants of the time model that both routes are priced by."""

    constants: Mapping[str, float]
    widths: Mapping[str, BucketWidth]
    """Of the intervals, by bucket."""

    @staticmethod
    def shipped() -> Prices:
        """Those that ``catalog/data/time_model.toml`` holds."""
        model = time_model()
        return Prices(constants=model.values, widths=model.intervals)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Both:
    """The same rows by both routes, with predictions and widths of the shipped constants."""

    quick: Design
    compiled: Design
    predicted: dict[str, Floats]
    widths: dict[str, Floats]

    @staticmethod
    def of(rows: Sequence[Row], quick: Path, compiled: Path, prices: Prices) -> Both:
        """Predict the rows from the kernels in both folders, which must have all of them.

        Every card is judged by the program compiled for its family; where there is none, by that
        for ``SERVING``.
        """
        clocks = time_model().sustained_clock
        serving = [_compiled_for(row, compiled) for row in rows]
        designs = {
            "quick": design_of(rows, quick, clocks),
            "compiled": design_of(serving, compiled, clocks),
        }
        return Both(
            quick=designs["quick"],
            compiled=designs["compiled"],
            predicted={
                name: design.predict(prices.constants) if rows else np.empty(0)
                for name, design in designs.items()
            },
            widths={
                name: row_widths(design, prices.widths, design.launch_share(prices.constants))
                for name, design in designs.items()
            },
        )

    def line(self, label: str, chosen: NDArray[np.bool_]) -> Line:
        """Scores of the chosen rows; raises ``ValueError`` without any."""
        scores = [
            judge.score(self.quick, chosen, self.predicted[name], self.widths[name])
            for name in ("quick", "compiled")
        ]
        quick, compiled = scores
        if quick is None or compiled is None:
            raise ValueError(f"no rows to judge for {label}")
        return Line(label=label, quick=quick, compiled=compiled)

    def refitted(self, chosen: NDArray[np.bool_]) -> Line:
        """The chosen rows, with constants for each route that have not seen the card."""
        way, bad = WAYS["gpu"], contradicted(list(self.quick.rows))
        learnable = chosen & np.array([row.number not in bad for row in self.quick.rows])
        parameters = time_model().parameters
        predicted = {}
        for name, design in (("quick", self.quick), ("compiled", self.compiled)):
            start = fit(design.take(np.flatnonzero(learnable)), parameters)
            predicted[name] = leave_out(
                design, parameters, learnable, folds(way, design.rows), start=start
            )
        label = f"{ALL}, refitted, {way.title}"
        return replace(self, predicted=predicted).line(label, chosen)

    def lines(self, label: Callable[[int], str]) -> tuple[Line, ...]:
        """Lines of the rows with one label each, those furthest apart first."""
        labels: defaultdict[str, list[int]] = defaultdict(list)
        for index in range(len(self.quick.rows)):
            labels[label(index)].append(index)
        found = [self.line(name, self.mask(index)) for name, index in labels.items()]
        return tuple(sorted(found, key=lambda line: (-abs(line.points), line.label)))

    def mask(self, index: Iterable[int]) -> NDArray[np.bool_]:
        """The rows with these numbers as a choice."""
        mask = np.zeros(len(self.quick.rows), dtype=bool)
        mask[list(index)] = True
        return mask


def _compiled_for(row: Row, folder: Path) -> Row:
    """The row with its record in the folder of a family."""
    family = family_of(find(row.slug)).slug
    own = path_of(folder / family, row.record).exists()
    return replace(row, function=f"{family if own else SERVING}/{row.function}")
