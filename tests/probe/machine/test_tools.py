from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.doctor.machine_facts import BuildInfo, MachineFacts, PythonFacts
from tfdyno.probe.machine.tools import toolkit_version, tools

if TYPE_CHECKING:
    from tests.probe.conftest import Build

SITE = "/e/lib/python3.11/site-packages"


def test_the_folder_of_the_flag_comes_before_wheel_and_toolkit(build: Build) -> None:
    files = {
        f"{SITE}/nvidia/cuda_nvcc/bin/ptxas": "",
        "/usr/local/cuda-12.5/nvvm/libdevice/libdevice.10.bc": "",
        "/x/cuda/bin/ptxas": "",
    }
    variables = {"XLA_FLAGS": "--xla_dump_to=/d --xla_gpu_cuda_data_dir=/x/cuda"}
    part = tools(build(files, python="/e/bin/python", environment=variables), MachineFacts())
    assert part.fields["ptxas"] == "/x/cuda/bin/ptxas"
    assert part.fields["libdevice"] == "/usr/local/cuda-12.5/nvvm/libdevice/libdevice.10.bc"
    assert part.fields["tools_searched"] == (
        "/x/cuda", "./cuda_sdk_lib", f"{SITE}/nvidia/cuda_nvcc", "/usr/local/cuda-12.5",
    )  # fmt: skip


def test_ptxas_on_the_path_counts_and_nothing_is_an_empty_result(build: Build) -> None:
    part = tools(build({"/b/ptxas": ""}, environment={"PATH": "/a:/b"}), MachineFacts())
    assert (part.fields["ptxas"], part.fields["libdevice"]) == ("/b/ptxas", "")


def test_a_build_without_cuda_needs_no_tools(build: Build) -> None:
    facts = MachineFacts(python=PythonFacts(build=BuildInfo(is_cuda_build=False)))
    assert tools(build({}), facts).reason == "this TensorFlow is built without CUDA"


def test_the_toolkit_tells_its_version_in_three_ways(build: Build) -> None:
    host = build({"/usr/local/cuda-12.1/bin/x": ""})
    assert toolkit_version(host) == "12.1"
    host.path("/usr/local/cuda-12.1/version.txt").write_text("CUDA Version 12.1.66\n")
    assert toolkit_version(host) == "12.1.66"
    host.path("/usr/local/cuda-12.1/version.json").write_text('{"cuda": {"version": "12.1.1"}}')
    assert toolkit_version(host) == "12.1.1"
    host.path("/usr/local/cuda-12.1/version.json").write_text("[]")
    assert toolkit_version(host) == "12.1.66"
