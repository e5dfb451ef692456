"""A profile is known by its name, and read by a child process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.runtime.planted_profiles import REAL, Training, planes_of, space

from tfdyno.core.errors import UsageError
from tfdyno.jobs.diagnose_profile import examined_profile, is_profile

if TYPE_CHECKING:
    from pathlib import Path


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
