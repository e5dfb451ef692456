"""The fixed computation beside the steps."""

from __future__ import annotations

import pytest
from tests.runtime.benches import in_tensorflow

CODE = """
import time
from tfdyno.runtime.reference_speed import ReferenceSpeed
speed = ReferenceSpeed()
nothing = speed.quartile_s
began = time.perf_counter()
speed.measure()
spent = time.perf_counter() - began
first = speed.quartile_s
speed._seconds = [4.0, 1.0, 2.0, 3.0, 100.0, 100.0, 100.0, 100.0]
beside = [speed.beside() for _ in range(3)]
result = [nothing, first, spent, speed.quartile_s, speed.device, beside]
"""


@pytest.mark.tf
def test_it_takes_little_time_and_a_burst_of_a_neighbour_does_not_count() -> None:
    nothing, first, spent, quartile, device, beside = in_tensorflow(CODE)
    assert nothing == 0.0
    assert 0.0 < first <= spent
    assert spent < 5.0  # 0.2 s and its tracing, on a loaded machine
    assert quartile == 3.0
    assert device == "cpu"
    assert 0.0 < min(beside) < 0.25
