"""Releases and drivers as their publishers state them, read from the shipped tables."""

from __future__ import annotations

import datetime
import re

import pytest

from tfdyno.catalog import releases
from tfdyno.catalog.software import NEWEST


def test_the_newest_pip_install_guide_of_2_21_is_in_the_table() -> None:
    found = releases.release_of("2.21.0")
    assert found is not None
    assert found.requirement == "tensorflow[and-cuda]"
    assert not found.has_native_windows_gpu


@pytest.mark.parametrize(
    ("version", "cuda", "cudnn"),
    [  # tensorflow.org/install/source, "Tested build configurations", GPU
        ("2.10", "11.2", "8.1"),
        ("2.12.1", "11.8", "8.6"),
        ("2.15.0", "12.2", "8.9"),
        ("2.17.0", "12.3", "8.9"),
        ("2.18.0", "12.5", "9.3"),
    ],
)
def test_cuda_and_cudnn_are_those_of_the_tested_build(version: str, cuda: str, cudnn: str) -> None:
    found = releases.release_of(version)
    assert found is not None
    assert (found.cuda, found.cudnn) == (cuda, cudnn)


def test_the_candidate_of_2_22_is_known_and_is_no_release_yet() -> None:
    found = releases.candidate()
    assert found is not None
    assert found == releases.release_of("2.22.0rc0")
    assert (found.cuda, found.cudnn, found.is_candidate) == ("12.5", "9.10", True)
    assert "3.14" in found.python_versions
    assert "sm_120" not in found.compute_capabilities
    assert releases.all_releases()[-1].tensorflow == NEWEST


READ_ON = datetime.date(2026, 11, 26)


@pytest.mark.parametrize(
    ("version", "days", "why"),
    [
        ("2.23.0", 0, "release"),
        ("3.0", 0, "release"),
        ("2.22.0", 10, "candidate"),
        ("2.22", 400, "candidate"),
        ("2.22.0rc0", 10, ""),  # it is what was read
        ("2.21.0", 180, ""),
        ("2.21.0", 181, "age"),
        ("", 181, "age"),
        ("nightly", 0, ""),
        ("2.9.1", 0, ""),  # 9 is less than 22
    ],
)
def test_tables_older_than_a_release_say_so(version: str, days: int, why: str) -> None:
    found = releases.behind(version, READ_ON + datetime.timedelta(days=days))
    assert (found.why if found else "") == why
    if found:
        assert (found.date, found.last, found.age_days) == ("2026-11-26", "2.22.0rc0", days)


def test_native_windows_ended_with_2_10() -> None:
    native = [r.tensorflow for r in releases.all_releases() if r.has_native_windows_gpu]
    assert native[-1] == "2.10"


@pytest.mark.parametrize("version", ["", "2", "nightly", "9.99.0", "tensorflow 2.10"])
def test_an_unknown_version_has_no_release(version: str) -> None:
    assert releases.release_of(version) is None


def test_patch_and_suffix_do_not_change_the_release() -> None:
    assert releases.release_of("2.16.2") == releases.release_of("2.16.0rc0+cpu")
    assert releases.release_of("2.1.0") != releases.release_of("2.10.0")


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def test_releases_are_ordered_and_their_cells_are_clean() -> None:
    found = releases.all_releases()
    minors = [numbers(one.tensorflow) for one in found]
    assert minors == sorted(set(minors))
    for one in found:
        assert one.python_versions
        assert all(re.fullmatch(r"(2\.7|3\.\d+)", version) for version in one.python_versions)
        assert all(re.fullmatch(r"(sm|compute)_\d+a?", each) for each in one.compute_capabilities)
        drivers = one.min_driver_linux, one.min_driver_windows
        assert all(re.fullmatch(r"[\d.]*", driver) for driver in drivers)
        assert " " not in one.requirement


def test_drivers_are_those_of_the_cuda_release_notes() -> None:
    # CUDA 12.8 release notes, table 3: 570.26 (Linux), 570.65 (Windows);
    # table 2: 525.60.13 for 12.x
    found = {one.cuda: one for one in releases.cuda_drivers()}
    assert (found["12.8"].linux, found["12.8"].windows) == ("570.26", "570.65")
    assert found["12.8"].oldest_linux == "525.60.13"


def test_each_toolkit_stands_once_newest_first_and_no_older_driver_than_its_oldest() -> None:
    found = releases.cuda_drivers()
    toolkits = [numbers(one.cuda) for one in found]
    assert toolkits == sorted(set(toolkits), reverse=True)
    # NVIDIA asks for 450.80.02 of 11.x, though 11.0 itself came with 450.51.05.
    for one in (one for one in found if one.cuda != "11.0"):
        assert numbers(one.oldest_linux) <= numbers(one.linux)
