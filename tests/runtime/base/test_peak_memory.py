"""The peak of a process's memory since it was reset."""

from __future__ import annotations

import pytest
from tests.runtime.benches import in_tensorflow

CODE = """
import numpy as np
from tfdyno.runtime.base.peak_memory import PeakMemory
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
    before, after, kind = in_tensorflow(CODE)
    assert kind == "process"
    assert before - after > 200 << 20  # of the 256 MiB
