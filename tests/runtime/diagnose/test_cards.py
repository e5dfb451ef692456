"""Which of its cards a training uses: TensorFlow opens them all."""

from __future__ import annotations

import pytest

from tfdyno.runtime.diagnose.cards import used_cards

FOUR = [f"/physical_device:GPU:{number}" for number in range(4)]


@pytest.mark.parametrize(
    ("visible", "variables", "replicas", "used"),
    [
        (FOUR, ["GPU:0"], 1, [0]),
        (FOUR, ["CPU:0"], 1, [0]),  # what computes is the first all the same
        (FOUR, ["GPU:2", "CPU:0"], 1, [2]),
        (FOUR, ["GPU:0", "GPU:3"], 1, [0, 3]),  # layers on two of them
        (FOUR, ["GPU:0"], 2, [0, 1]),  # mirrored: its first part is told
        (FOUR, ["GPU:2"], 2, [2, 3]),
        (FOUR[2:], ["GPU:0"], 1, [2]),  # the script took the third
        (FOUR[:2], ["GPU:0"], 0, [0, 1]),  # divided into logical ones
        (FOUR[:1], [], 8, [0]),
        ([], ["CPU:0"], 1, []),
    ],
)
def test_cards_of_a_training(
    visible: list[str], variables: list[str], replicas: int, used: list[int]
) -> None:
    assert used_cards(visible, variables, replicas) == tuple(used)
