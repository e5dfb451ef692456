from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.runtime.workload.tasks.learning import assert_learns

if TYPE_CHECKING:
    from tests.runtime.workload.tasks.learning import Trained


def test_weights_are_those_of_the_published_model_and_a_head(described: dict[str, Any]) -> None:
    assert described["bert-base"]["parameter_count"] == 109_482_240 + 10 * 769


def test_blocks_of_the_image_are_words_after_the_first(described: dict[str, Any]) -> None:
    tokens, segments, mask, _ = map(np.array, described["bert-base"]["real"])
    assert described["bert-base"]["real_kinds"] == ["int32[3,128]"] * 3 + ["int32[3]"]
    assert (tokens[:, 0] == 101).all()
    assert set(tokens[0, 1:].tolist()) == {1000}
    # In the frame of two pixels the white pixel is at (2, 2), one of 8 of block 1 x 8 + 0; the grey
    # square lies in rows 10 to 13 and columns 10 to 13: blocks of rows 5, 6 and columns 2, 3, half.
    words = {8: 1000 + 255 // 8 * 32 // 256} | dict.fromkeys(
        (42, 43, 50, 51), 1000 + 64 * 32 // 256
    )
    assert {i: int(tokens[1, i]) for i in words} == words
    assert (tokens[1, 1:] > 1000).sum() == len(words)
    assert (segments == 0).all()
    assert (mask == 1).all()


def test_random_words_are_from_the_whole_vocabulary(described: dict[str, Any]) -> None:
    low, high = described["bert-base"]["random_ends"][0]
    assert 0 <= low < 1000
    assert 29_000 < high < 30_522


@pytest.mark.tf
@pytest.mark.slow
def test_it_learns(trained: Trained) -> None:
    assert_learns("bert-base", trained, ways=("whole",))
