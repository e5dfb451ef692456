from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.runtime.workload.tasks.learning import assert_does_not_learn, assert_learns

if TYPE_CHECKING:
    from tests.runtime.workload.tasks.learning import Trained


def test_a_row_is_a_step(described: dict[str, Any]) -> None:
    x, y = map(np.array, described["lstm"]["real"])
    assert described["lstm"]["real_kinds"] == ["float32[3,28,28]", "int32[3]"]
    assert y.tolist() == [0, 4, 9]
    black, white = -0.2860 / 0.3530, (1 - 0.2860) / 0.3530
    assert x[0] == pytest.approx(np.full((28, 28), black), abs=1e-5)
    assert x[1, 0, 0] == pytest.approx(white, abs=1e-5)
    assert (x[1] > black + 1e-4).sum() == 1 + 16


@pytest.mark.tf
@pytest.mark.slow
def test_it_learns(trained: Trained) -> None:
    assert_learns("lstm", trained)


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.parametrize("how", ["shuffled", "still"])
def test_it_does_not_learn_when_broken(how: str, trained: Trained) -> None:
    assert_does_not_learn("lstm", how, trained)
