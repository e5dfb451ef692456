from __future__ import annotations

from dataclasses import replace
from math import log
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.steps import convolution, kernel, program

from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import time_model
from tfdyno.model import intervals
from tfdyno.model.intervals import around, log_half_width, model_family
from tfdyno.model.kernel_table import KernelTable

if TYPE_CHECKING:
    from tfdyno.core.explanation import Width
    from tfdyno.core.program import Kernel

WIDTHS = {"default": 0.3, "cnn/train/xla": 0.2, "cnn/infer/xla": 0.4, "launch-bound": 0.9}
MODEL = replace(time_model(), interval_log_half_width=WIDTHS)
DEPTHWISE = convolution(flops=1e9, traffic_bytes=1e6, channels=(96, 96), groups=96)


def found(
    gpu: str = "a100-sxm4-40gb", family: str = "cnn", execution: str = "xla", launch: float = 0.0
) -> Width:
    return intervals.width(
        MODEL,
        family=family,
        mode="train",
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


def test_an_unmeasured_execution_takes_the_widest_of_the_family() -> None:
    assert width(execution="graph") == 0.4
    assert width(family="other") == 0.3


def test_blackwell_is_at_least_forty_per_cent_wide() -> None:
    assert width("rtx-5090") == pytest.approx(log(1.4), abs=1e-3)


def test_a_step_that_waits_for_launches_is_less_certain() -> None:
    assert width(launch=0.5) == 0.9


@pytest.mark.parametrize(
    ("named", "bucket", "reason"),
    [
        ({}, "cnn/train/xla", ""),
        ({"execution": "graph"}, "cnn/infer/xla", "nothing was measured of cnn/train/graph"),
        ({"family": "other"}, "default", "nothing was measured of other/train/xla"),
        ({"launch": 0.5}, "launch-bound", "launches and the host hold the step"),
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


def test_the_width_alone_is_that_of_the_reasons() -> None:
    alone = log_half_width(
        MODEL,
        family="cnn",
        mode="train",
        execution="graph",
        gpu=find("t4"),
        launch_share=0.0,
    )
    assert alone == width("t4", execution="graph")


@given(st.floats(1e-6, 1e3), st.floats(0, 2))
def test_the_interval_is_symmetric_in_the_logarithm(best: float, half: float) -> None:
    one = around(best, half)
    assert one.low * one.high == pytest.approx(best * best)
