"""Predictions to be scored: the shipped constants as they are, or with rows left out."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.catalog.time_model import time_model
from tfdyno.core.base.errors import UsageError
from tfdyno_truth.run import fit_all, measured
from tfdyno_truth.sheet import Judged
from tfdyno_truth.ways import WAYS
from tfdyno_truth.widths import row_widths

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tfdyno_truth.run import Fitted


@lru_cache(maxsize=1)
def shipped(folder: Path) -> Judged:
    """What the shipped constants and widths say of every row; no fit is made.

    Raises:
        UsageError: There is no kernel record in the folder.
    """
    model = time_model()
    design = measured(folder)
    if not design.rows:
        raise UsageError(f"{folder} holds no kernel record", remedy="see tfdyno-truth records")
    return Judged(
        design=design,
        main=np.array([not r.apart for r in design.rows]),
        predicted=design.predict(model),
        width=row_widths(design, model.intervals, design.launch_share(model)),
    )


def left_out(folder: Path, name: str, tell: Callable[[str], None]) -> Judged:
    """What fits say of the rows that they have not seen, by the way called ``name``."""
    return judged(fit_all(folder, ways=(name,), tell=tell), WAYS[name].title)


def judged(fitted: Fitted, title: str) -> Judged:
    """One of the predictions that a fit holds."""
    return Judged(
        design=fitted.design,
        main=fitted.main,
        predicted=fitted.by_name[title],
        width=fitted.row_widths[title],
    )
