from __future__ import annotations

import pytest

from tfdyno.catalog import gpus, software
from tfdyno.core.base.errors import UsageError


@pytest.mark.parametrize(
    ("gpu", "release", "verdict"),
    [
        ("t4", "2.21", "native"),
        ("gtx-1080-ti", "2.21", "native"),
        ("a100-sxm4-80gb", "2.21.0", "native"),
        ("a100-sxm4-80gb", "2.15", "jit"),  # elementwise kernels: PTX only up to 2.15
        ("h100-sxm5-80gb", "2.21", "jit"),  # 80 % of fatbins are compiled at first use
        ("rtx-5090", "2.20", "cannot"),  # PTX for sm_90a is refused
        ("rtx-5090", "2.21", "jit"),  # 2.21 ships PTX for sm_90
        ("b200-sxm-180gb", "2.19", "cannot"),
        ("b300-sxm-270gb", "2.21", "jit"),
        ("a100-sxm4-80gb:1g.10gb", "2.21", "native"),
        ("gh200-96gb", "2.21", "cannot"),  # aarch64 host
        ("jetson-agx-orin-64gb", "2.21", "cannot"),
        ("t4", "2.13", "native"),  # between 2.12 and 2.14, which agree
        ("t4", "2.22", "native"),
        ("rtx-5090", "2.22", "jit"),  # 2.22.0rc0: the same targets as 2.21
        ("t4", "2.23", "unknown"),
        ("t4", "1.15", "unknown"),
    ],
)
def test_verdict_follows_the_code_found_in_the_wheel(gpu: str, release: str, verdict: str) -> None:
    assert software.wheel_support(gpus.find(gpu), release).verdict == verdict


@pytest.mark.parametrize(
    ("gpu", "native", "runnable"),
    [
        ("t4", "2.3", "2.3"),
        ("rtx-4090", "2.16", "2.4"),
        ("h100-sxm5-80gb", "", "2.4"),
        ("rtx-5090", "", "2.21"),  # 2.16 to 2.20 cannot, earlier CUDA predates the card
    ],
)
def test_smallest_release_is_the_one_from_which_all_later_run(
    gpu: str, native: str, runnable: str
) -> None:
    found = software.wheel_support(gpus.find(gpu))
    assert (found.smallest_native, found.smallest_runnable) == (native, runnable)


@pytest.mark.parametrize(
    ("gpu", "release", "driver"),
    [
        ("t4", "2.21", "525.60.13"),  # CUDA 12 floor
        ("h100-sxm5-80gb", "2.21", "555.42.02"),  # PTX 8.5 = CUDA 12.5
        ("h100-sxm5-80gb", "2.16", "525.60.13"),
        ("rtx-5090", "2.21", "570.26"),  # first branch that knows the card: CUDA 12.8
    ],
)
def test_driver_is_the_largest_of_all_floors(gpu: str, release: str, driver: str) -> None:
    assert software.wheel_support(gpus.find(gpu), release).driver_linux == driver


def test_an_inferred_release_says_so() -> None:
    assert "inferred" in software.wheel_support(gpus.find("t4"), "2.13").detail


def test_every_gpu_gets_a_sentence() -> None:
    for gpu in gpus.all_gpus():
        support = software.wheel_support(gpu)
        assert support.detail
        assert support.verdict != "unknown", gpu.slug


@pytest.mark.parametrize(
    ("release", "message"),
    [
        ("1.2", "TensorFlow 1.2 is too old; name a release from 2.9 to"),
        ("2.8.4", "is too old"),
        (
            "2.99",
            r"TensorFlow 2.99 is not known yet: the tables are of \d{4}-\d\d-\d\d and end with 2",
        ),
        ("newest", "'newest' is no TensorFlow release"),
    ],
)
def test_a_release_outside_what_is_known_is_refused(release: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        software.check_release(release)


@pytest.mark.parametrize("release", ["2.9", "2.10.1", "2.21", "2.21.0", "2.22"])
def test_a_known_release_passes_and_has_a_wheel(release: str) -> None:
    software.check_release(release)
    assert software.wheel_support(gpus.find("t4"), release).verdict in ("native", "jit")
