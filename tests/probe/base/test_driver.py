from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.core.messages.nvidia import LibraryTold
from tfdyno.probe.base.children import Answers
from tfdyno.probe.base.driver import cuda_driver, driver, module_version, readable_cuda

if TYPE_CHECKING:
    from tests.probe.conftest import Build


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.199.02  Thu May 11", "470.199.02"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Rel", "580.65.06"),
        ("NVRM version: NVIDIA UNIX aarch64 Kernel Module  560.35 Sun", "560.35"),
        ("nonsense", ""),
    ],
)
def test_the_version_of_the_module_is_read(build: Build, line: str, version: str) -> None:
    assert module_version(build({"/proc/driver/nvidia/version": line + "\n"})) == version


def test_a_module_and_a_library_of_different_versions_show(build: Build) -> None:
    line = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu\n"
    files = {
        "/proc/driver/nvidia/version": line,
        "/usr/lib64/libcuda.so.1": "-> libcuda.so.535.183.01",
        "/usr/lib64/libcuda.so.535.183.01": "",
        "/proc/driver/nvidia/params": "RmProfilingAdminOnly: 0\n",
    }
    told = driver(build(files), MachineFacts()).fields["driver"]
    assert (told.version, told.library_version) == ("535.129.03", "535.183.01")
    assert (told.restricts_profiling, told.is_forward_compat) == (False, False)


def test_nothing_at_all_is_an_empty_result(build: Build) -> None:
    told = driver(build({}), MachineFacts()).fields["driver"]
    assert (told.version, told.library_path, told.restricts_profiling) == ("", "", None)


def test_a_child_that_dies_in_cuinit_leaves_no_answer_as_the_error(build: Build) -> None:
    told = (LibraryTold(name="cuda", path="/l/libcuda.so.550.54.14"),)
    answers = Answers(started=True, reason="cuInit did not answer within 6 s", told=told)
    part = cuda_driver(build({}), MachineFacts(), answers)
    assert (part.state, part.fields["driver"].init_error) == ("failed", "no answer")
    assert part.fields["driver"].library_version == "550.54.14"


def test_cuda_numbers_are_versions() -> None:
    assert [readable_cuda(one) for one in (12080, 11040, 13000, 0)] == ["12.8", "11.4", "13.0", ""]
