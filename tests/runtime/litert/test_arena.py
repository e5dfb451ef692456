"""The memory that LiteRT itself lays out is at least what is alive at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfdyno.model.edge.need import peak
from tfdyno.runtime.litert.arena import arena_bytes
from tfdyno.runtime.litert.file import read

DATA = Path(__file__).parents[1].parent / "data" / "litert"


@pytest.mark.parametrize("name", ["cnn", "cnn-int8", "cnn-integers", "wave-int8"])
def test_the_arena_holds_all_that_is_alive(name: str) -> None:
    path = DATA / f"{name}.tflite"
    assert peak(read(path), 0)[0] <= arena_bytes(path) + 64


def test_the_arena_of_a_convolution_holds_its_unrolled_input() -> None:
    # 24 x 24 places of 3 x 3 x 8 floats: the largest value of the plain kernel.
    assert arena_bytes(DATA / "cnn.tflite") > 24 * 24 * 72 * 4


def test_values_that_do_not_lie_together_are_not_told() -> None:
    path = DATA / "rnn.tflite"  # what a loop makes has its place at run time
    assert arena_bytes(path) <= 64 * 1024
