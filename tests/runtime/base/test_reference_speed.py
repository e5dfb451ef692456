"""The small computation beside the steps."""

from __future__ import annotations

import pytest
from tests.runtime.benches import in_tensorflow

CODE = """
import time
from tfdyno.runtime.base.reference_speed import ReferenceSpeed, is_needed
speed = ReferenceSpeed()
def spent(budget_s):
    began = time.perf_counter()
    one_s = speed.measure(budget_s)
    return one_s, time.perf_counter() - began
result = [is_needed(), spent(0.0), spent(0.2)]
"""


@pytest.mark.tf
def test_it_takes_as_long_as_it_may_and_once_at_least() -> None:
    is_needed, (one_s, alone_s), (mean_s, many_s) = in_tensorflow(CODE)
    assert is_needed, "there is no GPU here"
    assert 0.0 < one_s <= alone_s
    assert 0.0 < mean_s < 0.2 <= many_s
    assert many_s < 0.2 + 40 * max(one_s, mean_s)  # once more than it may, not ten times


PIPELINE = """
import threading
from tfdyno.runtime.base.reference_speed import ReferenceSpeed
def seconds(speed):
    return [speed.measure(0.001) for _ in range(8)]
for _ in range(10):  # on a busy machine TensorFlow's threads may spin on for longer
    quiet = ReferenceSpeed()
    alone = seconds(quiet)
    if not quiet.is_disturbed:
        break
def work():
    while not ended.is_set():
        sum(range(1000))
ended = threading.Event()
threading.Thread(target=work, daemon=True).start()
disturbed = ReferenceSpeed()
beside = seconds(disturbed)
ended.set()
result = [quiet.is_disturbed, alone, disturbed.is_disturbed, beside]
"""


@pytest.mark.tf
def test_it_stops_where_the_workload_itself_works_on() -> None:
    is_quiet_disturbed, alone, is_disturbed, beside = in_tensorflow(PIPELINE)
    assert not is_quiet_disturbed
    assert min(alone) > 0.0
    assert is_disturbed
    assert beside[5:] == [0.0] * 3
