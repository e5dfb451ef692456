"""A profile is known by its name, and read by a child process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.runtime.planted_profiles import REAL, Training, planes_of, space

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.diagnose.profile import examined_profile, is_profile

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.jobs.diagnose.diagnose import Examined


def test_a_stall_of_10_ms_in_each_step_is_told_as_input(tmp_path: Path) -> None:
    file = tmp_path / "gpu.xplane.pb"
    file.write_bytes(space(planes_of(Training(input_us=10_000))))
    told: list[str] = []
    examined = examined_profile(tmp_path, progress=told.append)
    assert examined.diagnosis.primary.bottleneck_class == "input"
    assert examined.diagnosis.split_s["input"] == pytest.approx(10e-3)
    assert examined.facts.source == "profile"
    assert told[0] == "reading gpu.xplane.pb"


def test_a_stall_in_a_real_profile_is_told_as_input() -> None:
    assert examined_profile(REAL).diagnosis.primary.bottleneck_class == "input"


def examined(folder: Path, training: Training, capability: int = 8) -> Examined:
    file = folder / "gpu.xplane.pb"
    said = {"/device:GPU:0": {"compute_cap_major": capability, "compute_cap_minor": 0}}
    file.write_bytes(space(planes_of(training), said))
    return examined_profile(file)


def test_an_exchange_that_nothing_hides_is_told_though_one_card_is_seen(tmp_path: Path) -> None:
    # 3 ms of exchange after 3 ms of products: six tenths of it may go, four tenths of these
    found = examined(tmp_path, Training(exchange="exposed", kernels=3)).diagnosis
    assert found.primary.cause == "communication.small_batch"
    assert found.primary.summary.startswith("Replicas exchange their gradients for 50 % of")
    assert found.primary.expected_gain
    assert found.primary.expected_gain.best == pytest.approx(1 / (1 - 0.6 * 0.498), abs=1e-3)
    # After 10 ms of products 16 bits gain more: 4 of 13 ms, against 1.8.
    less = examined(tmp_path, Training(exchange="exposed", kernels=10)).diagnosis
    assert [one.cause for one in less.findings] == [
        "compute.precision", "communication.small_batch"
    ]  # fmt: skip


def test_16_bits_are_no_lever_on_a_card_without_tensor_cores(tmp_path: Path) -> None:
    assert examined(tmp_path, Training(), 6).diagnosis.primary.bottleneck_class == "healthy"
    seen = examined(tmp_path, Training(), 8)
    assert (seen.facts.compute_capability, seen.diagnosis.primary.cause) == (
        "8.0", "compute.precision"
    )  # fmt: skip
    assert seen.diagnosis.primary.settings == {"precision": "mixed_bfloat16"}


def test_a_foreign_file_is_wrong_use(tmp_path: Path) -> None:
    file = tmp_path / "picture.xplane.pb"
    file.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    with pytest.raises(UsageError, match=r"picture\.xplane\.pb is no profile that can be read"):
        examined_profile(file)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ((), True),  # the child says that it is empty
        (("plugins/profile/2026_11_22_09_28_41/vm.xplane.pb",), True),
        (("train/events.out.tfevents.1.host.2.v2",), True),
        (("saved_model.pb", "variables/variables.index"), False),
    ],
)
def test_a_folder_of_logs_is_a_profile_and_one_of_a_model_is_not(
    tmp_path: Path, files: tuple[str, ...], expected: bool
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert is_profile(str(tmp_path)) is expected


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("logs/vm.xplane.pb", True),
        ("vm.trace.json.gz", True),
        ("train.py", False),
        ("train.py:build", False),
        ("keras:ResNet50", False),
    ],
)
def test_a_file_is_a_profile_by_its_name(reference: str, expected: bool) -> None:
    assert is_profile(reference) is expected
