"""Where libraries and tools are looked for, in the order of the loader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.probe.base.folders import (
    configured,
    everywhere,
    loader_path,
    package_folders,
    toolkits,
)
from tfdyno.probe.base.host import Host

if TYPE_CHECKING:
    from tests.probe.conftest import Build

SITE = "/env/lib/python3.11/site-packages"


def test_the_path_of_the_loader_is_split_as_the_system_writes_it() -> None:
    linux = Host(environment={"LD_LIBRARY_PATH": "/a:/b::/c"})
    assert loader_path(linux) == ("/a", "/b", "/c")
    windows = Host(system="windows", environment={"PATH": r"C:\a;;C:\b"})
    assert loader_path(windows) == (r"C:\a", r"C:\b")


def test_packages_of_nvidia_bring_folders_of_their_own(build: Build) -> None:
    files = {f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9": "", f"{SITE}/nvidia/cudnn/__init__.py": ""}
    host = build(files, python="/env/bin/python")
    assert package_folders(host) == (f"{SITE}/nvidia/cudnn/lib",)


def test_configured_folders_are_read_from_the_loader_s_files(build: Build) -> None:
    host = build(
        {
            "/etc/ld.so.conf.d/cuda.conf": "# CUDA\n/usr/local/cuda/lib64\n  /gone\n",
            "/usr/local/cuda/lib64/libcudart.so.12": "",
            "/usr/lib/libc.so": "",
        }
    )
    assert configured(host) == ("/usr/local/cuda/lib64", "/usr/lib")


def test_a_named_toolkit_comes_before_the_usual_ones(build: Build) -> None:
    files = {"/sw/cuda-12.4/bin/ptxas": "", "/usr/local/cuda-11.8/bin/ptxas": ""}
    host = build(files, environment={"CUDA_HOME": "/sw/cuda-12.4/", "CUDA_PATH": "/gone"})
    assert toolkits(host) == ("/sw/cuda-12.4", "/usr/local/cuda-11.8")


def test_everywhere_names_each_folder_once_and_the_loader_s_first(build: Build) -> None:
    files = {
        f"{SITE}/torch/lib/libcudnn.so.9": "",
        f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9": "",
        "/usr/local/cuda/lib64/libcudart.so.12": "",
    }
    host = build(
        files, python="/env/bin/python", environment={"LD_LIBRARY_PATH": "/usr/local/cuda/lib64"}
    )
    found = everywhere(host, MachineFacts())
    assert found[:2] == ("/usr/local/cuda/lib64", f"{SITE}/nvidia/cudnn/lib")
    assert found[-1] == f"{SITE}/torch/lib"
    assert len(found) == len(set(found))
