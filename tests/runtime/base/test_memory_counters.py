"""What a process holds, by the accounts that there are."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
import os
import numpy as np, tensorflow as tf
from tfdyno.runtime.base import memory_counters
from tfdyno.runtime.base.memory_counters import MemoryCounters, device_limit_bytes

counters = MemoryCounters()
unopened = [counters.resident_bytes(), counters.allocated_bytes()]
tf.ones((10, 10)) @ tf.ones((10, 10))
counters.open()

def grown(make, times=1):
    before = counters.allocated_bytes(), counters.resident_bytes()
    kept = [make() for _ in range(times)]
    return [counters.allocated_bytes() - before[0], counters.resident_bytes() - before[1]]

@tf.function
def doubled(x):
    return x * 2.0

x = tf.ones((1024, 256))
doubled(x), doubled(x[:64])
result = {
    "unopened": unopened, "devices": list(counters.devices),
    "array": grown(lambda: np.ones(1 << 20), 8),
    "tensors": grown(lambda: doubled(x), 40), "small": grown(lambda: doubled(x[:64]), 40),
    "objects": grown(lambda: [object() for _ in range(1000)], 10),
    "freed": grown(lambda: doubled(x) is None, 40),
    "own": counters.allocated_bytes() - counters.allocated_bytes(1000),
    "limit": device_limit_bytes("GPU:7"),
}
before = counters.resident_bytes()
counters.close()
result["closed"] = counters.resident_bytes()

# a C library that knows of next to nothing: another allocator stands in front of it
class Other(MemoryCounters):
    def allocated_bytes(self, own_blocks=0):
        return 1000
other = Other()
other.open()
result["other"] = MemoryCounters.allocated_bytes(other)
other.close()
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return dict(in_tensorflow(CODE))


def test_what_is_not_open_tells_nothing(found: dict[str, Any]) -> None:
    assert found["unopened"] == [-1, -1]
    assert found["closed"] == -1


def test_arrays_count_with_their_bytes(found: dict[str, Any]) -> None:
    # By hand: 8 arrays of 2^20 doubles are 64 MiB.
    allocated, resident = found["array"]
    assert allocated == pytest.approx(64 * 2**20, rel=0.01)
    assert resident == pytest.approx(64 * 2**20, rel=0.05)


def test_tensors_count_with_their_bytes_not_with_the_pool_they_come_from(
    found: dict[str, Any],
) -> None:
    # By hand: 40 tensors of 1024 x 256 floats are 40 MiB; pools double, and may hold 64.
    assert found["tensors"][0] == pytest.approx(40 * 2**20, rel=0.05)
    assert found["small"][0] == pytest.approx(40 * 2**16, rel=0.1)  # they come from no pool


def test_small_objects_count_by_their_number(found: dict[str, Any]) -> None:
    # 10,000 objects and the lists that hold them; the first of 10 lists is no small object.
    assert 0.5e6 < found["objects"][0] < 2e6
    assert found["own"] == pytest.approx(1000 * 95, abs=20_000)


def test_what_was_freed_does_not_count(found: dict[str, Any]) -> None:
    assert abs(found["freed"][0]) < 2**20


def test_the_host_has_an_account_where_tensorflow_keeps_one(found: dict[str, Any]) -> None:
    assert found["devices"] in ([], ["CPU:0"])  # without oneDNN there is none
    assert found["limit"] == 0


def test_a_c_library_that_is_passed_by_is_not_asked(found: dict[str, Any]) -> None:
    assert found["other"] == -1


PEAK = """
import numpy as np
from tfdyno.runtime.base.memory_counters import PeakMemory
memory = PeakMemory()
large = np.ones(1 << 28, np.uint8)
before, kind = memory.read()
del large
memory.reset()
after, _ = memory.read()
result = [before, after, kind]
"""


@pytest.mark.tf
def test_what_was_held_before_the_reset_is_forgotten() -> None:
    before, after, kind = in_tensorflow(PEAK)
    assert kind == "process"
    assert before - after > 200 << 20  # of the 256 MiB
