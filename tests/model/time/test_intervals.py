from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.steps import convolution, kernel, program

from tfdyno.catalog.gpus import find
from tfdyno.core.choose.time_model import BucketWidth
from tfdyno.model.time import intervals
from tfdyno.model.time.intervals import around, model_family, with_unmeasured_call
from tfdyno.model.time.kernel_table import KernelTable

if TYPE_CHECKING:
    from tfdyno.core.choose.explanation import Width
    from tfdyno.core.choose.program import Kernel

WIDTHS = {
    bucket: BucketWidth(log_half_width_ratio=width, groups=groups)
    for bucket, width, groups in (
        ("default", 0.1, 60),
        ("cnn/train/xla", 0.2, 40),
        ("cnn/infer/xla", 0.4, 15),
        ("transformer/infer/graph", 0.3, 5),
    )
}
DEPTHWISE = convolution(flops=1e9, traffic_bytes=1e6, channels=(96, 96), groups=96)


def found(
    gpu: str = "a100-sxm4-40gb",
    family: str = "cnn",
    execution: str = "xla",
    launch: float = 0.0,
    mode: str = "train",
) -> Width:
    return intervals.width(
        WIDTHS,
        family=family,
        mode=mode,
        execution=execution,
        gpu=find(gpu),
        launch_share=launch,
    )


def width(gpu: str = "a100-sxm4-40gb", **named: Any) -> float:
    return found(gpu, **named).log_half_width_ratio


@pytest.mark.parametrize(
    ("kernels", "family"),
    [
        ((convolution(flops=1e9, traffic_bytes=1e6), kernel("gemm", flops=1e8)), "cnn"),
        ((convolution(flops=1e9, traffic_bytes=1e6), DEPTHWISE), "depthwise"),
        ((convolution(flops=1e7), kernel("gemm", flops=1e9, traffic_bytes=1e6)), "transformer"),
        ((kernel("loop", flops=1e3, traffic_bytes=1e6),), "other"),
    ],
)
def test_the_family_follows_the_work(kernels: tuple[Kernel, ...], family: str) -> None:
    assert model_family(KernelTable.of(program(*kernels))) == family


def test_a_known_bucket_gives_its_width() -> None:
    assert width() == 0.2


def test_what_was_not_measured_takes_the_widest_that_is_alike() -> None:
    assert width(execution="graph") == 0.4  # of the family
    assert width(family="other") == 0.2  # of its mode and execution
    assert width(family="other", mode="infer", execution="graph") == 0.3
    assert width(family="other", execution="eager-torch") == 0.1  # of all


def test_under_tensorflow_blackwell_is_at_least_forty_per_cent_wide() -> None:
    assert width("rtx-5090") == pytest.approx(log(1.4), abs=1e-3)
    assert width("rtx-5090", mode="infer") == 0.4
    assert width("rtx-5090", execution="eager-torch") == width(execution="eager-torch")


def test_a_step_that_waits_for_launches_is_less_certain() -> None:
    assert width(launch=0.1) == pytest.approx(0.2 * 1.09**0.5)
    assert width(launch=1.0) == pytest.approx(0.2 * 10**0.5)


def test_the_number_of_groups_behind_a_width_is_told() -> None:
    assert found().groups == 40
    assert found(family="other", mode="infer", execution="graph").groups == 5


@pytest.mark.parametrize(
    ("named", "bucket", "reason"),
    [
        ({}, "cnn/train/xla", ""),
        ({"execution": "graph"}, "cnn/infer/xla", "nothing was measured of cnn/train/graph"),
        ({"family": "other"}, "cnn/train/xla", "nothing was measured of other/train/xla"),
        ({"launch": 0.5}, "cnn/train/xla", "launches and the host hold the step"),
        ({"gpu": "rtx-5090"}, "cnn/train/xla", "at least ±40 %"),
    ],
)
def test_a_width_says_which_measurements_it_is_of_and_why(
    named: dict[str, Any], bucket: str, reason: str
) -> None:
    one = found(**named)
    assert one.bucket == bucket
    assert len(one.reasons) == bool(reason)
    assert all(told.startswith(reason) for told in one.reasons)


@given(st.floats(1e-6, 1e3), st.floats(0, 2))
def test_the_interval_is_symmetric_in_the_logarithm(best: float, half: float) -> None:
    one = around(best, half)
    assert one.low * one.high == pytest.approx(best * best)


def test_a_call_that_was_not_measured_may_take_more_and_says_so() -> None:
    step_s, one = with_unmeasured_call(around(1e-3, 0.0), found())
    assert (step_s.low, step_s.best, step_s.high) == pytest.approx((1e-3, 1e-3, 2.5e-3))
    assert one.reasons[-1].startswith("up to 1.5 ms more")
