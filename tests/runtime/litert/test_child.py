"""Timings are taken in turns; their interval is that of order statistics."""

from __future__ import annotations

from math import comb
from pathlib import Path

import pytest

from tfdyno.core.messages.litert import ReadLitert
from tfdyno.model.edge.need import peak
from tfdyno.runtime.litert.child import _CUT, ROUNDS, _timing, arena_bytes, handle
from tfdyno.runtime.litert.file import read

DATA = Path(__file__).parents[1].parent / "data" / "litert"


def test_the_interval_covers_the_median_in_96_percent() -> None:
    outside = 2 * sum(comb(ROUNDS, k) for k in range(_CUT + 1)) / 2**ROUNDS
    assert outside == pytest.approx(0.039, abs=0.001)


def test_of_nine_medians_the_second_and_the_eighth_are_the_ends() -> None:
    found = _timing(2, [9.0, 1.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0, 5.0], 90)
    assert (found.median_s, found.interval_s, found.rounds) == (5.0, (2.0, 8.0), 9)


def test_a_model_is_read_and_timed() -> None:
    told: list[str] = []
    request = ReadLitert(model=DATA / "cnn.tflite", threads=(1, 2), turn_s=0.01)
    found = handle(request, told.append)
    assert [one.threads for one in found.timings] == [1, 2]
    for one in found.timings:
        low, high = one.interval_s
        assert 0 < low <= one.median_s <= high
    assert found.arena_bytes > 0
    assert found.layers[0] == "first"
    assert told[-1] == "measuring on this CPU, round 9 of 9"


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
