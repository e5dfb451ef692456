from __future__ import annotations

import pytest
from tests.rules.environment.machines import HEALTHY, causes, library, machine, matches

NOT_FOUND = "cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("soname", "copies", "cause"),
    [
        ("libcudart.so.12", (), "lib.cuda_missing"),
        ("libcudart.so.11.0", ("/env/lib/libcudart.so.11.2.152",), "lib.not_on_loader_path"),
        ("libcudnn.so.9", ("/usr/local/cuda/lib64/libcudnn.so.9",), "lib.not_on_loader_path"),
        ("libcusolver.so.11", ("/cuda/lib64/libcusolver.so.10.6.0.245",), "lib.cuda_wrong_version"),
        ("libcudnn.so.8", (), "lib.cudnn_missing"),
        ("libcupti.so.12", (), "prof.cupti_missing"),
        ("cublas64_11.dll", (r"C:\CUDA\v12.1\bin\cublas64_12.dll",), "lib.cuda_wrong_version"),
        ("cublas64_11.dll", (r"C:\CUDA\v11.2\bin\cublas64_11.dll",), "lib.not_on_loader_path"),
    ],
)
def test_a_library_that_does_not_load(soname: str, copies: tuple[str, ...], cause: str) -> None:
    one = library(soname, error=NOT_FOUND, copies=copies)
    assert causes(machine(libraries=(one,))) == [cause]


def test_the_folder_of_the_copy_is_said() -> None:
    copy = r"C:\CUDA\v11.2\bin\cublas64_11.dll"
    facts = machine(libraries=(library("cublas64_11.dll", error=NOT_FOUND, copies=(copy,)),))
    assert matches(facts)["lib.not_on_loader_path"].values["folder"] == r"C:\CUDA\v11.2\bin"


def test_of_several_the_copy_out_of_reach_explains_most() -> None:
    facts = machine(
        libraries=(
            library("libcublas.so.12", error=NOT_FOUND),
            library("libcufft.so.11", error=NOT_FOUND, copies=("/cuda/lib64/libcufft.so.11",)),
        )
    )
    assert causes(facts) == ["lib.not_on_loader_path"]


def test_without_a_card_missing_libraries_are_no_fault() -> None:
    facts = machine(
        pci_gpus=(), gpus=(), device_nodes=(), libraries=(library("x.so.1", error=NOT_FOUND),)
    )
    assert causes(facts) == ["gpu.none"]


@pytest.mark.parametrize(
    ("version", "is_wrong"),
    [("9.1.0.70", True), ("9.3.0", False), ("9.8.0", False), ("8.9.7", True), ("10.0.0", True)],
)
def test_cudnn_must_be_of_the_same_major_version_and_not_older(
    version: str, is_wrong: bool
) -> None:
    found = matches(machine(libraries=(library("libcudnn.so.9", version=version),)))
    assert ("lib.cudnn_version_mismatch" in found) is is_wrong


def test_ptxas_and_libdevice_are_missed_only_where_they_were_looked_for() -> None:
    assert causes(machine(ptxas="", libdevice="")) == ["lib.libdevice_missing"]
    assert causes(machine(ptxas="")) == ["lib.ptxas_missing"]
    assert matches(machine(ptxas="", libdevice="", tools_searched=())) == {}
    assert matches(HEALTHY) == {}


def test_missing_libraries_explain_missing_tools() -> None:
    facts = machine(
        ptxas="", libdevice="", libraries=(library("libcudart.so.12", error=NOT_FOUND),)
    )
    assert causes(facts) == ["lib.cuda_missing"]
