"""Memory that grows with the steps, and who holds it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.watched import grown, line_of

pytestmark = pytest.mark.tf
MIB = 1 << 20


def _only(name: str) -> dict[str, Any]:
    growth: list[dict[str, Any]] = grown()[name]["growth"]
    assert len(growth) == 1
    assert growth[0]["where"] == "host"
    assert growth[0]["low_bytes_per_step"] <= growth[0]["bytes_per_step"]
    return growth[0]


def test_a_list_of_tensors_is_told_with_its_line_and_its_bytes() -> None:
    one = _only("tensors")
    # By hand: 512 x 512 floats are 1 MiB.
    assert one["bytes_per_step"] == pytest.approx(MIB, rel=0.1)
    assert one["kind"] == "tensors"
    line = line_of("tensors", "kept.append")
    assert one["suspects"] == [f"list of 60 tensors held by {line} (kept)"]


def test_what_a_running_function_holds_is_found_too() -> None:
    line = line_of("local", "outputs[number] =")
    assert _only("local")["suspects"] == [f"dict of 60 tensors held by {line} (outputs)"]


def test_losses_kept_as_tensors_are_growth_and_kept_as_numbers_are_none() -> None:
    assert 512 < _only("scalars")["low_bytes_per_step"] < 4096
    assert grown()["floats"]["growth"] == []


def test_a_callback_that_keeps_weights_is_told_by_its_attribute() -> None:
    one = _only("logs")
    assert one["kind"] == "logs"
    # By hand: 256 x 128 + 128 floats are 131,584 bytes.
    assert one["low_bytes_per_step"] == pytest.approx(131_584, rel=0.1)
    line = line_of("logs", "self.rows.append")
    assert one["suspects"][0] == f"list of 60 entries held by {line} (Keep.rows)"


def test_an_array_that_is_joined_in_each_step_grows_by_its_bytes() -> None:
    one = _only("array")
    assert one["bytes_per_step"] >= 64 * 64 * 8  # 64 rows of 64 doubles
    assert one["suspects"][0].endswith(f"held by {line_of('array', 'joined = np.conc')} (joined)")


@pytest.mark.parametrize(("name", "kind"), [("iterators", "iterators"),
                                            ("new_functions_kept", "functions")])  # fmt: skip
def test_what_python_cannot_size_is_told_by_resident_memory(name: str, kind: str) -> None:
    one = _only(name)
    assert one["kind"] == kind
    assert one["low_bytes_per_step"] > 10_000
    assert "(kept)" in one["suspects"][0]
