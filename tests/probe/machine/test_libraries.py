from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.doctor.machine_facts import BuildInfo, MachineFacts, PythonFacts
from tfdyno.probe.base.children import Answers
from tfdyno.probe.machine.libraries import (
    TABLE,
    copies,
    libraries,
    library_of,
    readable,
    wanted,
    why_none,
)

if TYPE_CHECKING:
    from tests.probe.conftest import Build


@pytest.mark.parametrize(
    ("cuda", "cudnn", "sonames"),
    [
        ("10.1", "7", {"libcudart.so.10.1", "libcublas.so.10", "libcudnn.so.7"}),
        ("11.0", "8", {"libcudart.so.11.0", "libcusolver.so.10", "libcudnn.so.8"}),
        ("11.8", "8", {"libcudart.so.11.0", "libcusolver.so.11", "libcufft.so.10"}),
        ("12.5.1", "9", {"libcudart.so.12", "libnvJitLink.so.12", "libcudnn.so.9", "libnccl.so.2"}),
        ("12", "8", {"libcudart.so.12", "libcudnn.so.8"}),
        ("13.1", "9", {"libcudart.so.13", "libcufft.so.12"}),
    ],
)
def test_a_build_wants_the_libraries_of_its_cuda(cuda: str, cudnn: str, sonames: set[str]) -> None:
    build = BuildInfo(is_cuda_build=True, cuda=cuda, cudnn=cudnn)
    assert sonames <= {one.soname for one in wanted(build, "linux")}


def test_windows_wants_dlls_and_the_runtime_of_the_compiler() -> None:
    names = [
        one.soname
        for one in wanted(BuildInfo(is_cuda_build=True, cuda="11.2", cudnn="8"), "windows")
    ]
    assert {"cudart64_110.dll", "cudnn64_8.dll", "msvcp140_1.dll"} <= set(names)
    assert not [name for name in names if ".so" in name]


def test_an_unknown_cuda_wants_nothing_and_says_so() -> None:
    build = BuildInfo(is_cuda_build=True, cuda="99.1", cudnn="20")
    assert wanted(build, "linux")[:-1] == ()
    facts = MachineFacts(system="linux", python=PythonFacts(build=BuildInfo(is_cuda_build=True)))
    assert why_none(facts) == "the libraries of CUDA  are not known"


def test_every_row_of_the_table_has_a_source_and_the_name_of_its_library() -> None:
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 30
    for row in rows:
        assert row["source"]
        assert library_of(row["soname"]) == row["library"]
        assert not row["dll"] or library_of(row["dll"]) == row["library"]


@pytest.mark.parametrize(
    ("library", "number", "version"),
    [
        ("cudnn", 90501, "9.5.1"), ("cudnn", 8907, "8.9.7"), ("cudnn", 7605, "7.6.5"),
        ("nccl", 22703, "2.27.3"), ("nccl", 2804, "2.8.4"), ("cudart", 12050, "12.5"),
        ("cublas", 0, ""),
    ],
)  # fmt: skip
def test_numbers_of_libraries_are_versions(library: str, number: int, version: str) -> None:
    assert readable(library, number) == version


def test_copies_are_counted_once_whatever_links_lead_to_them(build: Build) -> None:
    host = build({
        "/a/libcudnn.so.8.9.6": "", "/a/libcudnn.so.8": "-> libcudnn.so.8.9.6",
        "/a/libcudnn.so": "-> libcudnn.so.8", "/b/libcudnn.so.9": "", "/b/libcudnn_ops.so.9": "",
        "/b/libcudart.txt": "",
    })  # fmt: skip
    assert copies(host, ("/a", "/b"))["cudnn"] == ("/a/libcudnn.so.8.9.6", "/b/libcudnn.so.9")


def test_without_a_child_a_live_machine_claims_nothing() -> None:
    from tfdyno.probe.base.host import Host

    build = BuildInfo(is_cuda_build=True, cuda="12.5", cudnn="9")
    facts = MachineFacts(system="linux", python=PythonFacts(build=build))
    answers = Answers(reason="there is no NVIDIA device")
    part = libraries(Host(is_live=True), facts, answers)
    assert (part.state, part.reason, part.fields) == ("not_run", "there is no NVIDIA device", {})
