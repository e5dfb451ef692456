from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.judged import everything

from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import time_model
from tfdyno.core.choose.time_model import BucketWidth
from tfdyno.model.time.intervals import UNSEEN_CAPABILITY, widening
from tfdyno_truth.ways import WAYS, folds
from tfdyno_truth.widths import (
    COVERAGE,
    PARENT_GROUPS,
    bucket,
    interval_widths,
    row_widths,
    unseen_row_widths,
)

if TYPE_CHECKING:
    from tfdyno_truth.design import Design


def design() -> Design:
    return everything().design


def every() -> np.ndarray:
    return np.ones(len(design().rows), dtype=bool)


@lru_cache(maxsize=1)
def share() -> np.ndarray:
    return design().launch_share(time_model())


def noise(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=0.1, size=len(design().rows))


def test_widths_hold_what_they_aim_at_where_errors_are_alike() -> None:
    residuals = [noise(1) * widening(share()), noise(2) * widening(share())]
    widths = interval_widths(design(), every(), residuals, share())
    held = [np.abs(one) <= row_widths(design(), widths, share()) for one in residuals]
    assert np.mean(held) == pytest.approx(COVERAGE, abs=0.01)
    # 91 % of a normal distribution lie within 1.695 standard deviations
    assert widths["default"].log_half_width_ratio == pytest.approx(0.1695, abs=0.01)


def test_a_bucket_of_few_groups_is_mostly_what_its_mode_and_execution_are() -> None:
    names = np.array([bucket(design(), i) for i in range(len(design().rows))])
    small, large = "depthwise/train/xla", "cnn/train/xla"
    error = np.where(names == small, 0.4, 0.1)
    found = interval_widths(design(), every(), [error], np.zeros(len(error)))
    groups = {name: len({design().rows[i].group for i in np.flatnonzero(names == name)})
              for name in (small, large)}  # fmt: skip
    assert {name: found[name].groups for name in groups} == groups
    assert groups[small] < 10 < groups[large]
    ratio = found[small].log_half_width_ratio / found["cnn/train/graph"].log_half_width_ratio
    own = groups[small] / (groups[small] + PARENT_GROUPS)
    assert 1.0 + 3.0 * own < ratio < 1.0 + 3.0 * own + 0.6  # its parent is above 0.1 as well


def test_the_rows_left_out_have_no_say_in_their_own_widths() -> None:
    mine = np.array([row.chip == "v100" for row in design().rows])
    chips = folds(WAYS["gpu"], design().rows)
    before, after = (
        unseen_row_widths(design(), every(), [error], share(), chips)
        for error in (noise(1), np.where(mine, 3.0, noise(1)))
    )
    assert mine.any()
    assert np.array_equal(before[mine], after[mine])
    assert (after[~mine] > before[~mine]).all()


def test_a_row_has_the_width_that_an_estimate_of_it_would_say() -> None:
    widths = {"default": BucketWidth(log_half_width_ratio=0.2, groups=9)}
    found = row_widths(design(), widths, share())
    assert found == pytest.approx(0.2 * widening(share()))


def test_executions_that_nobody_measured_on_new_cards_are_those_with_a_least_width() -> None:
    newest: dict[str, int] = {}
    for row in design().rows:
        capability = int(find(row.slug).compute_capability.split(".")[0])
        newest[row.execution] = max(newest.get(row.execution, 0), capability)
    for execution, capability in newest.items():
        assert capability < UNSEEN_CAPABILITY.get(execution, 99), execution
    assert newest["eager-torch"] >= min(UNSEEN_CAPABILITY.values())
