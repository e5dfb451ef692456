"""A library that failed to load: missing, of another version, or out of the loader's reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.jobs.machine.knowledge import capability_of, knowledge_of
from tfdyno.rules.causes import all_causes
from tfdyno.rules.explain import diagnose
from tfdyno.rules.log.explained import scan
from tfdyno.rules.told import machine_from_told, told_by_log

if TYPE_CHECKING:
    from tfdyno.core.doctor.finding import Finding

LOADER = "Could not load dynamic library '{0}'; dlerror: {0}: cannot open shared object file"


def findings(log: str, **told: Any) -> tuple[Finding, ...]:
    """What the doctor says of a log and of what is told of its machine."""
    seen = scan([log], all_causes())
    facts = told_by_log(seen, machine_from_told(told, capability_of), capability_of)
    return diagnose(log=seen, facts=facts, knowledge=knowledge_of(facts)).findings


def causes(log: str, **told: Any) -> list[str]:
    """The causes, the root first."""
    return [one.cause for one in findings(log, **told)]


@pytest.mark.parametrize(
    ("soname", "tensorflow", "cuda"),
    [
        ("libcusolver.so.10", "2.4", "11.2"),
        ("libcudart.so.10.1", "2.1", "10.2"),
        ("libcublas.so.10.0", "1.15", "11"),
        ("libcudart.so.11.0", "2.11", "12.1"),
        ("cudart64_101.dll", "2.3", "11.2"),
        ("libcublas.so.9.0", "1.12", "10.0"),
    ],
)
def test_a_library_of_another_toolkit_is_a_wrong_version(
    soname: str, tensorflow: str, cuda: str
) -> None:
    said = findings(LOADER.format(soname), tf=tensorflow, cuda=cuda)
    assert said[0].cause == "lib.cuda_wrong_version"
    assert soname in said[0].summary
    assert cuda in said[0].summary


@pytest.mark.parametrize(
    ("soname", "tensorflow", "cuda"),
    [
        ("libcudart.so.11.0", "2.11", "11.2"),
        ("libcusolver.so.10", "2.4", "11.0"),
        ("libcufft.so.10", "2.9", "11.8"),
        ("cudart64_110.dll", "2.10", "11.2"),
        ("libcublas.so.12", "2.16", "12.3"),
    ],
)
def test_a_library_of_the_installed_toolkit_is_out_of_reach(
    soname: str, tensorflow: str, cuda: str
) -> None:
    assert causes(LOADER.format(soname), tf=tensorflow, cuda=cuda)[0] == "lib.not_on_loader_path"


def test_nothing_told_leaves_the_library_missing() -> None:
    assert causes(LOADER.format("libcublas.so.11")) == ["lib.cuda_missing"]


def test_one_library_of_an_opened_toolkit_is_not_installed() -> None:
    log = "Successfully opened dynamic library libcudart.so.11.0\n" + LOADER.format(
        "libcusolver.so.11"
    )
    assert causes(log, tf="2.9") == ["lib.cuda_missing"]


def test_opened_libraries_tell_the_version_that_is_installed() -> None:
    log = "\n".join(
        [
            "Successfully opened dynamic library libcudart.so.11.0",
            "Successfully opened dynamic library libcublas.so.11",
            LOADER.format("libcusolver.so.10"),
            "Cannot dlopen some GPU libraries. Skipping registering GPU devices...",
        ]
    )
    assert causes(log, tf="2.4") == ["lib.cuda_wrong_version"]


def test_a_listed_file_that_failed_is_out_of_reach_and_its_folder_is_in_the_fix() -> None:
    log = LOADER.format("libcudart.so.11.0") + (
        "\n-rw-r--r-- 1 root root 679264 Nov 3 20:14 /opt/cuda-11.2/lib64/libcudart.so.11.0"
    )
    said = findings(log, os="Ubuntu 22.04")
    assert said[0].cause == "lib.not_on_loader_path"
    assert any("/opt/cuda-11.2/lib64" in step.command for step in said[0].fix)


def test_a_listed_file_of_another_library_says_nothing() -> None:
    log = LOADER.format("libcudart.so.11.0") + (
        "\n-rw-r--r-- 1 root root 679264 Nov 3 20:14 /usr/local/cuda/lib64/libcufft.so.10"
    )
    assert causes(log) == ["lib.cuda_missing"]


def test_the_line_about_cuda_drivers_is_about_the_runtime_library() -> None:
    line = "cudart_stub.cc:31] Could not find cuda drivers on your machine, GPU will not be used."
    assert causes(line, gpu="RTX 3060") == ["lib.cuda_missing"]
    assert causes(line, gpu="none", os="Ubuntu") == ["gpu.none"]


@pytest.mark.parametrize(
    ("tensorflow", "cuda", "cause"),
    [
        ("2.1", "10.2", "lib.cuda_wrong_version"),
        ("2.11", "12.0", "lib.cuda_wrong_version"),
        ("2.11", "11.2", "lib.not_on_loader_path"),
        ("2.11", "11.8", "lib.not_on_loader_path"),
        ("2.12", "", "lib.cuda_missing"),
    ],
)
def test_an_unnamed_library_is_judged_by_what_is_installed(
    tensorflow: str, cuda: str, cause: str
) -> None:
    line = "Cannot dlopen some GPU libraries. Please make sure the missing libraries are installed."
    assert causes(line, tf=tensorflow, cuda=cuda) == [cause]


def test_tensorrt_libraries_are_no_cuda_libraries() -> None:
    assert not [one for one in causes(LOADER.format("libnvinfer.so.7")) if one.startswith("lib.")]


def test_cudnn_is_missing_beside_an_installed_toolkit() -> None:
    log = "Successfully opened dynamic library libcudart.so.11.0\n" + LOADER.format("libcudnn.so.8")
    assert causes(log, tf="2.9", cuda="11.2") == ["lib.cudnn_missing"]


@pytest.mark.parametrize(
    ("line", "found", "wanted"),
    [
        (
            "Loaded runtime CuDNN library: 8.0.4 but source was compiled with: 8.1.0.",
            "8.0.4",
            "8.1.0",
        ),
        (
            "Loaded runtime CuDNN library: 7201 (compatibility version 7200) but source was"
            " compiled with 7004 (compatibility version 7000).",
            "7.2.1",
            "7.0.4",
        ),
        ("Loaded cudnn library: 5110 but source was compiled with 90300", "5.1.10", "9.3.0"),
    ],
)
def test_two_versions_of_cudnn_are_read_in_every_form(line: str, found: str, wanted: str) -> None:
    said = findings(line)
    assert said[0].cause == "lib.cudnn_version_mismatch"
    assert said[0].verdict == "proven"
    assert f"{found} " in said[0].summary
    assert f"{wanted}:" in said[0].summary


def test_the_package_that_mends_cudnn_is_named() -> None:
    line = "Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.3.0."
    commands = [step.command for step in findings(line, tf="2.18")[0].fix]
    assert 'python -m pip install --upgrade "nvidia-cudnn-cu12>=9.3,<10"' in commands


def test_one_version_of_cudnn_is_no_mismatch() -> None:
    assert causes("cuda_dnn.cc:384] Loaded cuDNN version 8900") == []
