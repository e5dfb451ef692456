"""Profiles as TensorFlow writes them: a GPU's built by its schema, a CPU's really made."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow
from tests.runtime.once import once
from tests.runtime.profiles import GPU

READ = (
    GPU
    + """
read = events_of(made(gpu))
result = to_builtins(read)
result["unmarked"] = len(events_of(made({"/device:GPU:0": gpu["/device:GPU:0"]})).steps_s)
result["empty"] = to_builtins(events_of(made({})))
"""
)


@functools.cache
def read() -> dict[str, Any]:
    return dict(once("profile_events", lambda: in_tensorflow(READ)))


@pytest.mark.tf
def test_kernels_are_named_by_the_operations_that_started_them() -> None:
    first = read()["devices"]["/device:GPU:0"][0]
    assert first["name"] == "m/dense/MatMul"
    assert first["operation"]["type"] == "MatMul"
    assert first["operation"]["kernel"] == "ampere_sgemm_128x64_nn"
    # By hand: the line begins at 1 s, the kernel 20 us later, and takes 40 us.
    assert first["begin_s"] == pytest.approx(1.000020)
    assert first["end_s"] == pytest.approx(1.000060)


@pytest.mark.tf
def test_lines_that_viewers_add_do_not_count_twice() -> None:
    names = [one["name"] for one in read()["devices"]["/device:GPU:0"]]
    assert names == ["m/dense/MatMul", "m/Mul", "m/dense/MatMul", "MemcpyH2D", "MemcpyD2D"]


@pytest.mark.tf
def test_copies_to_a_device_have_bytes_and_those_within_it_are_none() -> None:
    found = {one["name"]: one for one in read()["devices"]["/device:GPU:0"]}
    assert (found["MemcpyH2D"]["is_copy"], found["MemcpyH2D"]["copied_bytes"]) == (True, 4096)
    assert (found["MemcpyD2D"]["is_copy"], found["MemcpyD2D"]["copied_bytes"]) == (False, 0)


@pytest.mark.tf
def test_a_kernel_of_doubles_is_known_by_its_name() -> None:
    found = {one["name"]: one["is_float64"] for one in read()["devices"]["/device:GPU:0"]}
    assert (found["m/Mul"], found["m/dense/MatMul"]) == (True, False)


@pytest.mark.tf
def test_calls_of_functions_and_waits_for_data_are_no_operations() -> None:
    assert [one["name"] for one in read()["host"]] == ["m/dense/MatMul", "m/look/Unique"]


@pytest.mark.tf
def test_steps_are_those_that_were_marked_or_none() -> None:
    assert len(read()["steps_s"]) == 2
    assert read()["unmarked"] == 0
    assert read()["empty"] == {"devices": {}, "host": [], "steps_s": []}
