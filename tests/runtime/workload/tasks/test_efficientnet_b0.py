from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.workload.tasks.learning import assert_learns

if TYPE_CHECKING:
    from tests.runtime.workload.tasks.learning import Trained


def test_the_image_is_enlarged_eight_times(described: dict[str, Any]) -> None:
    assert described["efficientnet-b0"]["real_kinds"] == ["float32[3,224,224,3]", "int32[3]"]
    assert described["efficientnet-b0"]["brightest"] == [
        [row, column, channel] for row in range(8) for column in range(8) for channel in range(3)
    ]


@pytest.mark.tf
@pytest.mark.slow
def test_it_learns(trained: Trained) -> None:
    assert_learns("efficientnet-b0", trained, ways=("whole",))
