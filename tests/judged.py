"""The shipped predictions of all measurements, made once a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfdyno.catalog.time_model import time_model
from tfdyno.core.choose.time_model import BucketWidth
from tfdyno_truth.make_records import FOLDER
from tfdyno_truth.rows import contradicted
from tfdyno_truth.run import Fitted
from tfdyno_truth.score import shipped
from tfdyno_truth.ways import SEEN, WAYS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno_truth.rows import Row
    from tfdyno_truth.sheet import Judged


def everything() -> Judged:
    """All rows on one GPU with the shipped constants."""
    return shipped(FOLDER)


def some(chosen: Callable[[Row], bool]) -> Judged:
    """Those rows that are chosen."""
    found = everything()
    return found.within(np.array([chosen(row) for row in found.design.rows]))


def as_fit(found: Judged) -> Fitted:
    """The shipped predictions in place of a fit's; with the model left out they are 10 % longer."""
    bad = contradicted(list(found.design.rows))
    predicted = {way.title: found.predicted for way in WAYS.values() if way.name != "pair"}
    predicted[WAYS["model"].title] = 1.1 * found.predicted
    return Fitted(
        design=found.design,
        main=found.main,
        learnable=found.main & np.array([row.number not in bad for row in found.design.rows]),
        constants=time_model().values,
        by_name={SEEN: found.predicted, **predicted},
        widths={"default": BucketWidth(log_half_width_ratio=0.4, groups=9)},
        row_widths=dict.fromkeys((SEEN, *predicted), found.width),
        seconds_s=1.0,
    )
