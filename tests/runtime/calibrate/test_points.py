from __future__ import annotations

import pytest

from tfdyno.runtime.calibrate.points import Point, kernel_of, points


@pytest.mark.parametrize("where", ["cpu", "gpu"])
def test_every_point_has_a_name_of_its_own_and_a_kernel(where: str) -> None:
    found = points(where)
    assert len({one.name for one in found}) == len(found) > 80
    for one in found:
        kernel = kernel_of(one)
        assert kernel.read_bytes.fixed + kernel.write_bytes.fixed > 0
        assert one.held_bytes < 2e9


def test_processors_are_swept_in_float32_only() -> None:
    assert {one.dtype for one in points("cpu")} == {"f32"}
    assert {one.dtype for one in points("gpu")} == {"f32", "tf32", "f16", "bf16"}


def test_a_product_has_two_operations_for_each_multiply_add() -> None:
    point = Point(operation="gemm", dtype="f16", sizes={"m": 2, "n": 3, "k": 5}, form="forward")
    kernel = kernel_of(point)
    assert kernel.flops.fixed == 2 * 2 * 3 * 5
    assert kernel.read_bytes.fixed == (2 * 5 + 5 * 3) * 2
    assert (kernel.write_bytes.fixed, kernel.dtype) == (2 * 3 * 2, "f16")


def test_a_convolution_counts_its_window_and_a_depthwise_one_a_channel() -> None:
    sizes = {"n": 2, "h": 4, "w": 4, "cin": 8, "cout": 8, "kh": 3, "kw": 3, "stride": 2}
    plain = Point(operation="convolution", dtype="f32", sizes={**sizes, "groups": 1},
                  form="weight_gradient")  # fmt: skip
    places = 2 * 2 * 2
    assert kernel_of(plain).flops.fixed == 2 * places * 8 * 8 * 9
    assert kernel_of(plain).write_bytes.fixed == 4 * 9 * 8 * 8
    assert kernel_of(plain).dims["output"] == (2, 2)
    depthwise = Point(operation="convolution", dtype="f32", sizes={**sizes, "groups": 8},
                      form="forward")  # fmt: skip
    assert kernel_of(depthwise).flops.fixed == 2 * places * 8 * 9


def test_an_operation_in_rows_reads_its_row_once() -> None:
    point = Point(operation="multiply", dtype="f32", sizes={"elements": 96, "columns": 32},
                  form="row")  # fmt: skip
    kernel = kernel_of(point)
    assert (kernel.read_bytes.fixed, kernel.write_bytes.fixed) == (4 * (96 + 32), 4 * 96)
    assert kernel.dims["per_thread"] == (1,)


def test_a_pools_gradient_runs_beside_the_pool() -> None:
    (first, *_) = [one for one in points("cpu") if one.operation == "pool_gradient"]
    assert first.beside is not None
    assert first.beside.operation == "pool"
    assert first.beside in points("cpu")
