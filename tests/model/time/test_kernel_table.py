from __future__ import annotations

from dataclasses import replace

import pytest
from tests.model.steps import convolution, kernel, program

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import Kernel
from tfdyno.model.time.kernel_table import (
    CostClass,
    KernelTable,
    class_of,
    kept_by_kernels,
    tile_padding,
    window_overlap,
)


@pytest.mark.parametrize(
    ("channels", "groups", "window", "shape"),
    [
        ((64, 64), 1, (1, 1), "pointwise"),
        ((64, 64), 1, (2, 2), ""),
        ((64, 64), 1, (3, 3), "winograd3"),
        ((64, 64), 1, (5, 5), "winograd5"),
        ((3, 64), 1, (7, 7), "narrow"),
        ((96, 96), 96, (3, 3), "depthwise"),
        ((128, 128), 32, (3, 3), "grouped"),
        ((64, 64), 1, (3, 3, 3), "volume"),
    ],
)
def test_a_convolution_is_classed_by_its_channels_groups_and_window(
    channels: tuple[int, int], groups: int, window: tuple[int, ...], shape: str
) -> None:
    found = class_of(convolution(flops=1.0, channels=channels, groups=groups, window=window))
    assert found.shape == shape


def test_a_pointwise_convolution_with_a_stride_is_no_matrix_product() -> None:
    plain = convolution(flops=1.0, window=(1, 1))
    strided = replace(plain, dims={**plain.dims, "stride": (2, 2)})
    assert (class_of(plain).shape, class_of(strided).shape) == ("pointwise", "")


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (
            Kernel(kind="reduce", dtype="f32", dims={"inner": (1,)}),
            CostClass("reduce", shape="rows"),
        ),
        (Kernel(kind="reduce", dtype="f32", dims={"inner": (64,)}), CostClass("reduce")),
        (Kernel(kind="reduce", dtype="f32"), CostClass("reduce")),
        (Kernel(kind="loop", dtype="f32", dims={"inner": (1,)}), CostClass("loop")),
        (Kernel(kind="loop", dtype="f32", phase="update"), CostClass("loop", shape="update")),
        (
            Kernel(kind="reduce", dtype="f32", dims={"inner": (1,)}, phase="update"),
            CostClass("reduce", shape="update"),
        ),
        (Kernel(kind="gemm", dtype="f16", phase="update"), CostClass("gemm", "f16")),
    ],
    ids=["softmax", "statistics", "unknown", "loop", "optimizer", "norm of a gradient", "product"],
)
def test_what_no_library_provides_is_classed_by_what_it_adds_and_for_whom(
    made: Kernel, found: CostClass
) -> None:
    assert class_of(made) == found


def test_four_channels_a_group_fill_an_eighth_of_a_tile() -> None:
    assert tile_padding(convolution(flops=1.0, channels=(128, 128), groups=32)) == 32 / 4


def test_padding_counts_as_executed_but_not_as_useful_flops() -> None:
    grouped = convolution(flops=10.0, channels=(128, 128), groups=32)
    table = KernelTable.of(program(grouped))
    assert table.flops.sum() == 10.0
    assert table.work(3).executed_flops.sum() == 3 * 10.0 * 8


def test_overlapping_pooling_reads_every_element_more_than_once() -> None:
    pool = Kernel(kind="window", dtype="f16", dims={"window": (1, 3, 3, 1), "stride": (1, 2, 2, 1)})
    assert window_overlap(pool) == 9 / 4
    assert window_overlap(kernel("loop")) == 1.0


def test_work_is_affine_in_the_batch_and_summed_by_class() -> None:
    first = Kernel(kind="loop", dtype="f32", read_bytes=Scaled(fixed=5.0, per_sample=2.0))
    second = Kernel(kind="loop", dtype="f16", write_bytes=Scaled(per_sample=1.0), count=3)
    work = KernelTable.of(program(first, second)).work(10)
    assert work.traffic_bytes.tolist() == [5.0 + 20.0 + 10.0]
    assert work.launches.tolist() == [4.0]


def test_one_program_is_arranged_once() -> None:
    once = program(kernel("loop"))
    assert KernelTable.of(once) is KernelTable.of(once)
    assert KernelTable.of(once) is not KernelTable.of(program(kernel("loop")))


def test_the_work_of_a_class_is_the_sum_over_its_kernels() -> None:
    made = program(convolution(flops=1e9), kernel("loop"), convolution(flops=3e9))
    table = KernelTable.of(made)
    each, summed = table.by_kernel(2), table.work(2)
    assert each.executed_flops.tolist() == [2e9, 0.0, 6e9]
    assert sorted(summed.executed_flops.tolist()) == [0.0, 8e9]
    assert each.launches.sum() == summed.launches.sum() == 3.0


def test_kept_answers_are_of_the_same_kernels_and_the_same_rest() -> None:
    asked: list[tuple[int, float]] = []

    @kept_by_kernels
    def counted(kernels: tuple[Kernel, ...], grown: float) -> float:
        """Count."""
        asked.append((len(kernels), grown))
        return len(kernels) * grown

    one, alike = (kernel("loop"), kernel("loop")), (kernel("loop"), kernel("loop"))
    assert [counted(one, 2.0), counted(one, 2.0), counted(one, 3.0)] == [4.0, 4.0, 6.0]
    assert asked == [(2, 2.0), (2, 3.0)]
    assert counted(alike, 2.0) == 4.0
    assert len(asked) == 3  # equal kernels are others: an object's place may be taken by another
    assert counted.__doc__ == "Count."


def test_a_program_with_other_buffers_shares_the_table_of_its_kernels() -> None:
    made = program(kernel("loop"), kernel("loop"))
    assert KernelTable.of(replace(made, seconds_s=9.0)) is KernelTable.of(made)
