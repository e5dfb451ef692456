from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.probe.conftest import MACHINES, Recorded

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.doctor.machine_facts import LibraryFacts, MachineFacts
from tfdyno.probe.base.host import this_host
from tfdyno.probe.machine.machine import examine

ORDER = [
    "system", "python", "distributions", "tensorflow build", "requirements", "pci", "driver",
    "tools", "cuda", "nvml", "libraries",
]  # fmt: skip


def library(facts: MachineFacts, soname: str) -> LibraryFacts:
    return next(one for one in facts.libraries if one.soname == soname)


def ended(facts: MachineFacts, name: str) -> tuple[str, str]:
    return next((one.state, one.reason) for one in facts.probes if one.name == name)


@pytest.mark.parametrize("name", sorted(path.stem for path in MACHINES.glob("*.json")))
def test_every_recorded_machine_runs_all_probes_in_order(recorded: Recorded, name: str) -> None:
    facts = examine(recorded(name))
    assert [one.name for one in facts.probes] == ORDER
    assert not [one for one in facts.probes if one.state == "failed"]
    assert all(one.reason for one in facts.probes if one.state == "not_run")
    assert from_json(to_json(facts), MachineFacts) == facts


def test_linux_with_torchs_older_cudnn(recorded: Recorded) -> None:
    facts = examine(recorded("linux_pip"))
    assert (facts.system, facts.release, facts.container) == ("linux", "Ubuntu 22.04", "none")
    assert facts.cpu_flags == ("sse2", "avx", "avx2", "avx512f", "fma")
    assert facts.memory_bytes == 65761816 * 1024
    assert facts.shared_memory_bytes == 32880908 * 1024
    assert facts.environment == {"LD_LIBRARY_PATH": "", "CUDA_VISIBLE_DEVICES": "0,1"}
    assert (facts.python.version, facts.python.manager) == ("3.11.9", "pip")
    assert (facts.tensorflow, facts.keras, facts.cuda) == ("2.19.0", "3.10.0", "12.5.1")
    assert facts.python.broken_requirements == (
        "numpy<2.2.0,>=1.26.0 (installed 2.3.1)",
        "nvidia-cudnn-cu12==9.3.0.75 (installed 9.1.0.70)",
    )
    assert facts.pci_gpus == ("0000:01:00.0", "0000:02:00.0")
    assert facts.driver.version == facts.driver.library_version == "560.35.03"
    assert facts.driver.restricts_profiling is True
    cudnn = library(facts, "libcudnn.so.9")
    assert cudnn.version == facts.cudnn == "9.1.0.70"
    assert [Path(one).name for one in cudnn.copies] == ["libcudnn.so.9", "libcudnn.so.9.5.1"]
    assert library(facts, "libcublas.so.12").error
    assert facts.ptxas.endswith("site-packages/nvidia/cuda_nvcc/bin/ptxas")


def test_a_card_without_a_driver(recorded: Recorded) -> None:
    facts = examine(recorded("linux_no_driver"))
    assert facts.pci_gpus == ("0000:01:00.0",)
    assert facts.device_nodes == ()
    assert facts.driver.version == facts.driver.library_path == ""
    assert facts.python.manager == "uv"
    assert any(one.startswith("keras>=3.5.0 (not") for one in facts.python.broken_requirements)


def test_wsl_takes_the_library_of_windows(recorded: Recorded) -> None:
    facts = examine(recorded("wsl2"))
    assert facts.is_wsl is True
    assert facts.device_nodes == ("/dev/dxg",)
    assert facts.pci_gpus is None
    assert facts.driver.library_path == "/usr/lib/wsl/lib/libcuda.so.1"
    assert facts.driver.version == ""


def test_wsl_with_a_linux_driver_before_that_of_windows(recorded: Recorded) -> None:
    facts = examine(recorded("wsl2_ld_path_first"))
    assert facts.driver.library_path == "/usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01"


def test_a_container_without_gpus(recorded: Recorded) -> None:
    facts = examine(recorded("docker_without_gpus"))
    assert (facts.container, facts.device_nodes) == ("docker", ())
    assert facts.pci_gpus == ("0000:01:00.0",)
    assert facts.shared_memory_bytes == 64 << 20
    assert facts.memory_bytes == 8 << 30
    assert facts.driver.library_path == ""
    assert facts.environment["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert library(facts, "libcudnn.so.8").version == "8.9.6"


def test_a_container_whose_compat_library_hides_the_driver(recorded: Recorded) -> None:
    facts = examine(recorded("docker_with_gpus"))
    assert facts.driver.is_forward_compat
    assert (facts.driver.version, facts.driver.library_version) == ("470.199.02", "535.129.03")
    assert "/dev/nvidia0" in (facts.device_nodes or ())


def test_a_jetson(recorded: Recorded) -> None:
    facts = examine(recorded("jetson"))
    assert (facts.is_jetson, facts.architecture, facts.cpu_flags) == (True, "aarch64", ())
    assert facts.device_nodes == ("/dev/nvhost-gpu", "/dev/nvmap")
    assert facts.driver.library_path == "/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1.1"
    assert facts.python.build
    assert not facts.python.build.is_cuda_build
    assert ended(facts, "libraries") == ("not_run", "this TensorFlow is built without CUDA")


def test_conda_holds_libraries_that_the_loader_does_not_find(recorded: Recorded) -> None:
    facts = examine(recorded("conda"))
    assert (facts.python.manager, facts.python.version) == ("conda", "3.9.18")
    assert facts.python.tensorflow_owners == ("tensorflow", "tensorflow-gpu")
    have = {(one.name, one.version, one.installer) for one in facts.python.distributions}
    assert ("cudatoolkit", "11.2.2", "conda") in have
    assert ("tensorflow-base", "2.10.0", "conda") in have
    cudart = library(facts, "libcudart.so.11.0")
    assert (cudart.path, bool(cudart.error)) == ("", True)
    assert cudart.copies == ("/opt/conda/envs/tf/lib/libcudart.so.11.2.152",)


def test_a_cluster_whose_module_has_another_major_version(recorded: Recorded) -> None:
    facts = examine(recorded("hpc_modules"))
    assert (facts.release, facts.glibc, facts.cuda) == ("CentOS Linux 7", "2.17", "11.0.228")
    cusolver = library(facts, "libcusolver.so.11")
    assert (cusolver.path, bool(cusolver.error)) == ("", True)
    assert cusolver.copies == ("/apps/cuda/11.0/lib64/libcusolver.so.10.6.0.245",)
    assert library(facts, "libcudart.so.11.0").path == "/apps/cuda/11.0/lib64/libcudart.so.11.0"
    assert library(facts, "libcudnn.so.8").copies == ()


def test_native_windows(recorded: Recorded) -> None:
    facts = examine(recorded("windows"))
    assert (facts.system, facts.release, facts.architecture) == ("windows", "Windows 11", "x86_64")
    assert (facts.tensorflow, facts.python.version) == ("2.10.1", "3.10.11")
    assert facts.python.build
    assert (facts.python.build.cuda, facts.python.build.cudnn) == ("11.2", "8")
    assert facts.driver.library_path == r"C:\Windows\System32\nvcuda.dll"
    cudart = library(facts, "cudart64_110.dll")
    assert cudart.path.endswith(r"CUDA\v11.2\bin\cudart64_110.dll")
    assert library(facts, "cudnn64_8.dll").error
    assert library(facts, "msvcp140_1.dll").path == r"C:\Windows\System32\msvcp140_1.dll"
    assert facts.cuda == "11.2.2"


def test_windows_whose_tensorflow_is_an_empty_package(recorded: Recorded) -> None:
    facts = examine(recorded("windows_intel"))
    assert facts.release == "Windows 10"
    assert facts.python.tensorflow_owners == ("tensorflow-intel",)
    assert facts.tensorflow == "2.17.0"
    assert ended(facts, "nvml") == ("not_run", "this Windows has no NVIDIA driver")


def test_macos_with_metal(recorded: Recorded) -> None:
    facts = examine(recorded("macos"))
    assert (facts.system, facts.release, facts.architecture) == ("macos", "macOS 14.5", "arm64")
    assert "tensorflow-metal" in {one.name for one in facts.python.distributions}
    assert ended(facts, "driver") == ("not_run", "macOS has no NVIDIA driver")


def test_this_machine_is_examined_without_an_error() -> None:
    facts = examine(this_host())
    assert [one.name for one in facts.probes] == ORDER
    assert not [one for one in facts.probes if one.state == "failed"]
    assert facts.python.version.startswith("3.")
    if not facts.device_nodes and facts.system == "linux":
        assert ended(facts, "nvml") == ("not_run", "there is no NVIDIA device")


CHILD = """
import json, sys, time
from tfdyno.probe.base.host import this_host
from tfdyno.probe.machine.machine import examine
began = time.process_time()
facts = examine(this_host())
own_s, began = time.process_time() - began, time.process_time()
for _ in range(1_000_000):
    pass
heavy = {"numpy", "tensorflow", "keras", "jax", "importlib.metadata"}
print(json.dumps([own_s, time.process_time() - began, sorted(heavy & set(sys.modules))]))
"""


def test_probing_is_light() -> None:
    words = [sys.executable, "-c", CHILD]
    turns = [json.loads(subprocess.check_output(words, env=dict(os.environ))) for _ in range(3)]
    own_s, loop_s = (min(turn[at] for turn in turns) for at in (0, 1))
    assert own_s < 20 * loop_s  # 3 times as long as a million turns of an empty loop
    heavy = turns[0][2]
    if not (examine(this_host()).device_nodes or ()):
        assert heavy == []
