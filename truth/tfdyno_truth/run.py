"""Refit the time model to the stored kernel records and say how good it is."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tfdyno.catalog.time_model import time_model
from tfdyno.core.choose.time_model import BucketWidth
from tfdyno_truth.design import Design, design_of
from tfdyno_truth.fit import fit, leave_out
from tfdyno_truth.rows import contradicted, read_rows, single_gpu
from tfdyno_truth.ways import ONE_NEW, SEEN, WAYS, WIDTHS_FROM, folds
from tfdyno_truth.widths import interval_widths, row_widths, unseen_row_widths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tfdyno.core.choose.time_model import Parameter

    Floats = NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[2]
TIME_MODEL = ROOT / "src" / "tfdyno" / "catalog" / "data" / "time_model.toml"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """A fit on all rows and what fits without some of them predict for those."""

    design: Design
    main: NDArray[np.bool_]
    """Rows that are judged in the strata (neither launch-bound nor with fused attention)."""
    learnable: NDArray[np.bool_]
    """Rows that a fit may see: those bound by launches teach what the host costs."""
    constants: dict[str, float]
    by_name: dict[str, Floats]
    """``everything seen`` and titles of ``WAYS`` -> predicted seconds."""
    widths: dict[str, BucketWidth]
    """Of the intervals, learned from all rows; the shipped ones where ``WIDTHS_FROM`` was not
    asked for."""
    row_widths: dict[str, Floats]
    """Of every row's interval, learned without the rows that were left out together."""
    seconds_s: float


@lru_cache(maxsize=1)
def measured(folder: Path) -> Design:
    """All measurements on one GPU that have a kernel record in the folder; read once."""
    return design_of(single_gpu(read_rows()), folder, time_model().sustained_clock)


def fit_all(
    folder: Path,
    without: frozenset[str] = frozenset(),
    *,
    ways: Iterable[str] = ONE_NEW,
    parameters: Mapping[str, Parameter] | None = None,
    tell: Callable[[str], None] = lambda _stage: None,
) -> Fitted:
    """Fit on all rows, then in every way that is asked for without some of them.

    Args:
        folder: Kernel records.
        without: Terms to hold at a neutral value.
        ways: Names in ``WAYS``; without ``WIDTHS_FROM`` the intervals are as wide as shipped.
        parameters: Instead of the time model's.
        tell: Is given what is being done, in words.
    """
    start = time.monotonic()
    tell("reading measurements")
    design = measured(folder)
    bad = contradicted(list(design.rows))
    main = np.array([not r.apart for r in design.rows])
    judged = np.array([r.launch_bound or not r.apart for r in design.rows])
    learnable = judged & np.array([r.number not in bad for r in design.rows])
    parameters = parameters or time_model().parameters
    tell("everything seen")
    constants = fit(design.take(np.flatnonzero(learnable)), parameters, without=without)
    wanted = {name: folds(WAYS[name], design.rows) for name in ways}
    unseen = {
        WAYS[name].title: leave_out(
            design,
            parameters,
            learnable,
            left_out,
            without=without,
            start=None if WAYS[name].blind else constants,
            tell=_prefixed(tell, WAYS[name].title),
        )
        for name, left_out in wanted.items()
    }
    tell("widths of the intervals")
    share = design.launch_share(constants)
    widths = dict(time_model().intervals)
    unseen_widths = {WAYS[name].title: row_widths(design, widths, share) for name in wanted}
    if WIDTHS_FROM in wanted:
        residuals = [np.log(unseen[WAYS[WIDTHS_FROM].title]) - design.log_step]
        widths = interval_widths(design, judged, residuals, share)
        unseen_widths = {
            WAYS[name].title: unseen_row_widths(design, judged, residuals, share, left_out)
            for name, left_out in wanted.items()
        }
    return Fitted(
        design=design,
        main=main,
        learnable=learnable,
        constants=constants,
        by_name={SEEN: design.predict(constants), **unseen},
        widths=widths,
        row_widths={SEEN: row_widths(design, widths, share), **unseen_widths},
        seconds_s=time.monotonic() - start,
    )


def _prefixed(tell: Callable[[str], None], title: str) -> Callable[[str], None]:
    """``tell`` with the title before every stage."""
    return lambda fold: tell(f"{title}: {fold}")
