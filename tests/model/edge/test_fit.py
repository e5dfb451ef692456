"""Whether a model fits and its class of latency: by hand on a device of round figures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.deploy.edge import EdgeDevice, EdgeNeed, EdgeRuntime, EdgeVerdict
from tfdyno.model.edge.fit import latency_class, verdict

KIB = 1024
MICRO = EdgeRuntime(
    slug="litert-micro", name="Micro", code_bytes=64 * KIB, memory_bytes=4 * KIB, tensor_bytes=50,
    operator_bytes=100, on_chip_bytes=0, fastest_ratio=0.5, slowest_ratio=0.1, dispatch_s=1e-6,
    slow_dispatch_s=1e-5, source="made up",
)  # fmt: skip
CHIP = EdgeDevice(
    slug="chip", name="Chip", kind="microcontroller", runtime=MICRO, memory_bytes=100 * KIB,
    storage_bytes=1024 * KIB, float_ops_per_s=1e8, half_ops_per_s=1e8, integer_ops_per_s=1e9,
    memory_bytes_per_s=1e9, rule="", seen="2026-11-23", source="made up",
)  # fmt: skip
NEED = EdgeNeed(
    file_bytes=200 * KIB, weight_bytes=190 * KIB, live_bytes=80 * KIB, peak_operator="CONV_2D of a",
    float_arithmetic=0, integer_arithmetic=10_000_000, moved_bytes=1_000_000, port_bytes=1000,
    operators=20, table_operators=20,
    tensors=40, kinds=("CONV_2D", "SOFTMAX"), custom=(), open_batch=True, loops_unknown=False,
)  # fmt: skip
ALL = frozenset({"CONV_2D", "SOFTMAX"})


def judged(need: EdgeNeed = NEED, device: EdgeDevice = CHIP) -> EdgeVerdict:
    return verdict(need, device, operations=ALL, half=False)


def test_memory_is_values_tables_and_the_runtime() -> None:
    found = judged()
    assert found.memory_needed_bytes == 80 * KIB + 40 * 50 + 20 * 100 + 4 * KIB
    assert found.storage_needed_bytes == 264 * KIB
    assert found.fits
    assert found.obstacles == ()


def test_time_is_arithmetic_at_its_share_and_the_start_of_operators() -> None:
    low, high = judged().latency_s
    assert low == pytest.approx(1e7 / 1e9 / 0.5 + 20 * 1e-6)
    assert high == pytest.approx(1e7 / 1e9 / 0.1 + 20 * 1e-5)
    assert judged().bound_by == "compute"


def test_memory_bandwidth_bounds_what_computes_little() -> None:
    found = judged(replace(NEED, integer_arithmetic=1000, moved_bytes=50_000_000))
    assert found.bound_by == "memory_bandwidth"
    assert found.latency_s[1] == pytest.approx(0.05 / 0.4 + 20 * 1e-5)


def test_too_much_memory_names_the_operator_at_the_peak() -> None:
    found = judged(replace(NEED, live_bytes=120 * KIB))
    assert not found.fits
    assert "CONV_2D of a alone takes 120 KiB" in found.obstacles[0]


def test_the_file_takes_memory_too_but_on_a_microcontroller_which_reads_it_in_flash() -> None:
    larger = replace(NEED, file_bytes=NEED.file_bytes + 100 * KIB)
    there = replace(CHIP, runtime=replace(CHIP.runtime, slug="litert"))
    grown = [
        judged(larger, one).memory_needed_bytes - judged(NEED, one).memory_needed_bytes
        for one in (CHIP, there)
    ]
    assert grown == [0, 100 * KIB]


def test_flash_holds_model_and_program() -> None:
    found = judged(replace(NEED, file_bytes=1000 * KIB))
    assert found.obstacles == ("It needs 1.04 MiB of flash; there is 1 MiB.",)


def test_an_operator_that_a_microcontroller_lacks_is_an_obstacle() -> None:
    found = judged(replace(NEED, kinds=("CONV_2D", "GELU")))
    assert found.unsupported == ("GELU",)
    assert found.obstacles == ("Micro has no GELU.",)


def test_an_edge_tpu_leaves_what_it_lacks_to_the_cpu() -> None:
    runtime = replace(MICRO, slug="edgetpu", name="Edge TPU")
    device = replace(CHIP, runtime=runtime, memory_bytes=2**20)
    found = judged(replace(NEED, kinds=("CONV_2D", "GELU")), device)
    assert found.fits
    assert "GELU and what follows runs on the CPU beside it." in found.advice


def test_a_chip_that_keeps_weights_reads_only_the_rest() -> None:
    runtime = replace(MICRO, slug="edgetpu", on_chip_bytes=150 * KIB)
    device = replace(CHIP, runtime=runtime, memory_bytes_per_s=1e6)
    found = judged(NEED, device)  # 40 KiB of the weights, and inputs and outputs
    assert found.latency_s[0] == pytest.approx((40 * KIB + 1000) / 1e6 + 20e-6)


def test_an_edge_tpu_takes_no_floats() -> None:
    runtime = replace(MICRO, slug="edgetpu", on_chip_bytes=1)
    device = replace(CHIP, runtime=runtime, memory_bytes=2**30, storage_bytes=0)
    found = judged(replace(NEED, float_arithmetic=10**9), device)
    assert found.obstacles == ("The Edge TPU computes in 8 bits only.",)


def test_custom_operators_fit_nowhere() -> None:
    runtime = replace(MICRO, slug="litert", name="LiteRT")
    device = replace(CHIP, runtime=runtime, memory_bytes=2**30, storage_bytes=0)
    found = verdict(replace(NEED, custom=("FlexErfinv",)), device, operations=None, half=False)
    assert found.obstacles == ("LiteRT has no FlexErfinv.",)


def test_floats_on_a_small_device_are_told_of_int8() -> None:
    found = judged(replace(NEED, float_arithmetic=10**7, integer_arithmetic=0))
    assert "litert-int8" in found.advice[0]


@pytest.mark.parametrize(
    ("latency_s", "expected"),
    [(0.0, "real_time"), (0.033, "real_time"), (0.034, "interactive"), (0.199, "interactive"),
     (0.2, "batch"), (9.0, "batch")],
)  # fmt: skip
def test_classes_end_where_they_say(latency_s: float, expected: str) -> None:
    assert latency_class(latency_s) == expected


@given(more=st.integers(1, 10**9))
def test_more_arithmetic_is_never_faster(more: int) -> None:
    wider = replace(NEED, integer_arithmetic=NEED.integer_arithmetic + more)
    for now, then in zip(judged().latency_s, judged(wider).latency_s, strict=True):
        assert then > now
    low, high = judged(wider).latency_s
    assert low < high
