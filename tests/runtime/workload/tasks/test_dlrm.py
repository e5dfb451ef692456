from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.runtime.workload.tasks.learning import assert_does_not_learn, assert_learns

if TYPE_CHECKING:
    from tests.runtime.workload.tasks.learning import Trained


def test_weights_by_hand(described: dict[str, Any]) -> None:
    tables = 26 * 100_000 * 16
    bottom = 14 * 512 + 513 * 256 + 257 * 64 + 65 * 16
    pairs = 27 * 26 // 2
    top = (16 + pairs + 1) * 512 + 513 * 256 + 257
    assert described["dlrm"]["parameter_count"] == tables + bottom + top


def test_blocks_are_numbers_and_categories(described: dict[str, Any]) -> None:
    numbers, categories, click = map(np.array, described["dlrm"]["real"])
    assert described["dlrm"]["real_kinds"] == ["float32[3,13]", "int32[3,26]", "float32[3,1]"]
    assert click[:, 0].tolist() == [0, 0, 1], "classes 0, 4 and 9"
    # Block (2, 2) of 7 x 7 is number 16, the 11th of those that are used: 11 % 3 = 2, a category;
    # before it stand 3 of each 9 that are numbers. Its brightness of 128 is level 16 of 32.
    assert numbers[1].tolist() == [0] * 13
    assert np.flatnonzero(categories[1]).tolist() == [11 - 4]
    assert categories[1, 7] == 16
    assert categories[[0, 2]].sum() == 0


def test_random_categories_use_whole_tables(described: dict[str, Any]) -> None:
    _, (low, high), (no, yes) = described["dlrm"]["random_ends"]
    assert 0 <= low < 10_000
    assert 90_000 < high < 100_000
    assert {no, yes} <= {0, 1}


@pytest.mark.tf
def test_it_learns(trained: Trained) -> None:
    assert_learns("dlrm", trained)


@pytest.mark.tf
@pytest.mark.parametrize("how", ["shuffled", "still"])
def test_it_does_not_learn_when_broken(how: str, trained: Trained) -> None:
    assert_does_not_learn("dlrm", how, trained)
