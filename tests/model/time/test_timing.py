"""Which law prices a step: that of the generation of its software, for the execution asked."""

from __future__ import annotations

import pytest
from tests.model.steps import convolution, kernel, program

from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import time_model
from tfdyno.model.time.step import Setting
from tfdyno.model.time.timing import Timing, timing_of

NET = program(
    *[convolution(flops=4e7, traffic_bytes=4e5, window=(3, 3)) for _ in range(20)],
    *[kernel("loop", traffic_bytes=2e6) for _ in range(40)],
)


def timing(generation: str, execution: str = "xla", **setting: bool) -> Timing:
    return timing_of(
        NET, 64, find("h200-sxm-141gb"), Setting(execution=execution, mode="train", **setting),
        time_model(generation), tf32_allowed=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("generation", "execution", "by_kernel"),
    [
        ("2020", "xla", False),
        ("2023", "xla", True),
        ("2023", "graph", False),  # Keras 2: fused normalisations
        ("2026", "xla", True),
        ("2026", "graph", True),
        ("2026", "eager-torch", False),
    ],
)
def test_the_generation_chooses_the_law(generation: str, execution: str, by_kernel: bool) -> None:
    found = timing(generation, execution)
    assert (found.work is not None) is by_kernel
    assert (found.graph is not None) is (by_kernel and execution == "graph")


@pytest.mark.parametrize("generation", ["2020", "2023", "2026"])
@pytest.mark.parametrize("execution", ["xla", "graph"])
def test_kernels_add_up_to_the_device(generation: str, execution: str) -> None:
    found = timing(generation, execution)
    assert float(found.seconds.sum()) == pytest.approx(float(found.alone.device_s[0]))
    assert len(found.seconds) == len(NET.kernels)


def test_loss_scaling_makes_the_update_wait() -> None:
    plain, scaled = (timing("2026", "graph", loss_scaled=one) for one in (False, True))
    assert scaled.graph
    assert scaled.graph.drains
    assert float(scaled.alone.step_s[0]) >= float(plain.alone.step_s[0])
