"""The place where a workload would run, looked at without running it."""

from __future__ import annotations

import pytest
from tests.runtime.loaded import facts

pytestmark = pytest.mark.tf


def test_it_is_the_software_that_a_bench_would_tell() -> None:
    found = facts()["place"]
    assert found["software"] == facts()["software"]
    assert found["told"] == ["importing TensorFlow"]
