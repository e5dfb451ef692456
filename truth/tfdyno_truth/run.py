"""Refit the time model to the stored kernel records and say how good it is."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tfdyno.catalog.time_model import time_model
from tfdyno.model.intervals import LAUNCH_BOUND
from tfdyno_truth import judge
from tfdyno_truth.design import Design, design_of
from tfdyno_truth.fit import fit, leave_out
from tfdyno_truth.rows import contradicted, read_rows, single_gpu
from tfdyno_truth.ways import LEARNED_FROM, SEEN, WAYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tfdyno.core.time_model import Parameter

    Floats = NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[2]
TIME_MODEL = ROOT / "src" / "tfdyno" / "catalog" / "data" / "time_model.toml"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """A fit on all rows and what fits without each chip or architecture predict for it."""

    design: Design
    main: NDArray[np.bool_]
    """Rows that are judged in the strata (neither launch-bound nor with fused attention)."""
    learnable: NDArray[np.bool_]
    constants: dict[str, float]
    by_name: dict[str, Floats]
    """``everything seen``, ``card left out``, ``model left out`` -> predicted seconds."""
    widths: dict[str, float]
    """Of the intervals, learned from all rows."""
    row_widths: dict[str, Floats]
    """Of every row's interval, learned without the rows that were left out together."""
    seconds_s: float


def fit_all(
    folder: Path,
    without: frozenset[str] = frozenset(),
    *,
    ways: Iterable[str] = LEARNED_FROM,
    parameters: Mapping[str, Parameter] | None = None,
    tell: Callable[[str], None] = lambda _stage: None,
) -> Fitted:
    """Fit on all rows, then without every chip, every architecture and what else is asked for.

    Args:
        folder: Kernel records.
        without: Terms to hold at a neutral value.
        ways: Names in ``WAYS``; those that the widths are learned from are always done.
        parameters: Instead of the time model's.
        tell: Is given what is being done, in words.
    """
    start = time.monotonic()
    tell("reading measurements")
    rows = single_gpu(read_rows())
    bad = contradicted(rows)
    design = design_of(rows, folder, time_model().sustained_clock)
    main = np.array([not r.apart for r in design.rows])
    learnable = main & np.array([r.number not in bad for r in design.rows])
    parameters = parameters or time_model().parameters
    tell("everything seen")
    constants = fit(design.take(np.flatnonzero(learnable)), parameters, without=without)
    wanted = [WAYS[name] for name in dict.fromkeys((*LEARNED_FROM, *ways))]
    unseen = {
        way.title: leave_out(
            design,
            parameters,
            learnable,
            way.label,
            without=without,
            start=constants,
            tell=prefixed(tell, way.title),
        )
        for way in wanted
    }
    judged = np.array([row.apart in ("", LAUNCH_BOUND) for row in design.rows])
    learned_from = [unseen[WAYS[name].title] for name in LEARNED_FROM]
    residuals = [np.log(predicted) - design.log_step for predicted in learned_from]
    widths = judge.interval_widths(design, judged, residuals)
    tell("widths of the intervals")
    row_widths = {
        way.title: judge.unseen_row_widths(design, judged, residuals, way.label) for way in wanted
    }
    return Fitted(
        design=design,
        main=main,
        learnable=learnable,
        constants=constants,
        by_name={SEEN: design.predict(constants), **unseen},
        widths=widths,
        row_widths={SEEN: judge.row_widths(design, widths), **row_widths},
        seconds_s=time.monotonic() - start,
    )


def prefixed(tell: Callable[[str], None], title: str) -> Callable[[str], None]:
    """``tell`` with the title before every stage."""
    return lambda fold: tell(f"{title}: {fold}")
