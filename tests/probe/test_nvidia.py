"""The children against libraries that answer as NVIDIA's do, compiled on the spot."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.probe.machine.test_machine import ended, library

from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.core.messages.nvidia import LibraryTold
from tfdyno.probe.base import driver
from tfdyno.probe.base.children import Answers, Child, start
from tfdyno.probe.base.host import Host
from tfdyno.probe.cards import nvml
from tfdyno.probe.machine.machine import examine

if TYPE_CHECKING:
    from tests.probe.conftest import Build

    from tfdyno.probe.base.attempt import Part

MODULE = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build\n"
BUILD_INFO = """import collections
build_info = collections.OrderedDict([('cuda_version', '12.5.1'), ('cudnn_version', '9'),
    ('is_cuda_build', True), ('is_tensorrt_build', False)])
"""


def live(nvidia: Path, **variables: str) -> Host:
    environment = {"LD_LIBRARY_PATH": str(nvidia), "PATH": os.environ["PATH"], **variables}
    return Host(environment=environment, python=sys.executable, is_live=True)


def asked(host: Host, script: str, names: list[str], limit_s: float = 10.0) -> Answers:
    child = start("a test", script, host, {"names": names})
    try:
        return child.answers(limit_s)
    finally:
        child.stop()


def cards(host: Host, limit_s: float = 10.0) -> Part:
    answers = asked(host, "child_nvml.py", nvml.names(MachineFacts()), limit_s)
    return nvml.nvml(host, MachineFacts(), answers, Answers())


def cuda(host: Host) -> Part:
    answers = asked(host, "child_driver.py", driver.names(MachineFacts()))
    return driver.cuda_driver(host, MachineFacts(), answers)


def test_nvml_tells_memory_processes_mig_errors_and_brakes(nvidia: Path) -> None:
    part = cards(live(nvidia))
    hopper, virtual = part.fields["gpus"]
    assert (part.state, part.fields["driver"].version) == ("ok", "550.54.14")
    assert part.fields["driver"].cuda == "12.4"
    assert (hopper.name, hopper.compute_capability) == ("NVIDIA H100 80GB HBM3", "9.0")
    assert (hopper.memory_bytes, hopper.memory_used_bytes) == (85520809984, 1 << 30)
    assert (hopper.is_mig_enabled, hopper.is_vgpu, hopper.ecc_errors_uncorrected) == (
        True,
        False,
        7,
    )
    assert hopper.throttle == ("software power cap", "hardware thermal slowdown")
    own, hidden = hopper.processes
    assert own.name.startswith("python")
    assert own.memory_bytes == 1 << 30
    assert (hidden.pid, hidden.name, hidden.memory_bytes) == (4194303, "", 0)
    assert (virtual.is_mig_enabled, virtual.is_vgpu, virtual.throttle) == (False, True, ())
    assert virtual.uuid == "GPU-22222222-0000-0000-0000-000000000000"


def test_nvml_of_another_version_than_the_module_says_so(nvidia: Path) -> None:
    part = cards(live(nvidia, FAKE_NVML="mismatch"))
    assert (part.state, part.reason) == ("failed", "NVML: Driver/library version mismatch")


def test_a_lost_card_does_not_hide_the_others(nvidia: Path) -> None:
    part = cards(live(nvidia, FAKE_NVML="lost"))
    assert (part.state, len(part.fields["gpus"])) == ("failed", 2)
    assert part.reason == "NVML: a card does not answer: GPU is lost"


def test_nvml_that_hangs_is_left_after_its_time(nvidia: Path) -> None:
    part = cards(live(nvidia, FAKE_NVML="hang"), limit_s=0.5)
    assert (part.state, "did not answer within 0.5 s" in part.reason) == ("failed", True)


def test_nvml_that_crashes_takes_only_its_child(nvidia: Path) -> None:
    part = cards(live(nvidia, FAKE_NVML="crash"))
    assert (part.state, "exit code -6" in part.reason) == ("failed", True)


def test_without_nvml_the_driver_names_the_cards(nvidia: Path) -> None:
    host = live(nvidia)
    by_cuda = asked(host, "child_driver.py", ["libcuda.so.1"])
    part = nvml.nvml(host, MachineFacts(), asked(host, "child_nvml.py", ["libnone.so"]), by_cuda)
    (orin,) = part.fields["gpus"]
    assert (orin.name, orin.compute_capability, orin.memory_bytes) == ("Orin", "8.7", 8 * 10**9)
    assert part.state == "failed"


def test_the_driver_answers_whatever_cuda_visible_devices_says(nvidia: Path) -> None:
    told = cuda(live(nvidia, CUDA_VISIBLE_DEVICES="-1")).fields["driver"]
    assert (told.cuda, told.init_error, told.library_version) == ("12.4", "", "550.54.14")
    assert told.library_path == str(nvidia / "libcuda.so.550.54.14")


def test_the_error_of_cuinit_is_named(nvidia: Path) -> None:
    told = cuda(live(nvidia, FAKE_CUDA="unknown")).fields["driver"]
    assert told.init_error == "CUDA_ERROR_UNKNOWN"


def test_a_missing_driver_library_is_a_result(tmp_path: Path) -> None:
    part = cuda(live(tmp_path))
    if part.state == "failed":  # a machine with a driver of its own answers
        assert "libcuda.so.1" in part.reason


def test_no_child_means_not_run() -> None:
    answers = Child(name="", reason="there is no NVIDIA device").answers(1.0)
    facts = MachineFacts(pci_gpus=(), device_nodes=())
    part = nvml.nvml(Host(), facts, answers, answers)
    assert (part.state, part.reason) == ("not_run", "there is no NVIDIA device")
    assert part.fields == {"gpus": ()}


def test_an_interpreter_that_does_not_exist_is_a_result() -> None:
    child = start("NVML", "child_nvml.py", replace(live(Path("/x")), python="/no/python"), {})
    assert child.answers(1.0).reason.startswith("NVML cannot be started")


def test_a_tree_that_looks_like_a_gpu_machine(build: Build, nvidia: Path) -> None:
    site = f"{sys.prefix}/lib/python3.11/site-packages"
    files = {
        "/sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
        "/sys/bus/pci/devices/0000:01:00.0/class": "0x030200\n",
        "/dev/nvidia0": "",
        "/proc/driver/nvidia/version": MODULE,
        f"{site}/tensorflow/python/platform/build_info.py": BUILD_INFO,
        f"{site}/tensorflow-2.21.0.dist-info/METADATA": "Name: tensorflow\n\n",
    }
    about = {"python": sys.executable, "is_live": True, "architecture": "x86_64"}
    facts = examine(build(files, environment={"LD_LIBRARY_PATH": str(nvidia)}, **about))
    assert (facts.driver.version, facts.driver.cuda) == ("550.54.14", "12.4")
    assert len(facts.gpus or ()) == 2
    # libcudart is missing; libcublas kills its child; what comes after it is looked up on disk
    assert "libcudart.so.12" in library(facts, "libcudart.so.12").error
    assert "did not survive" in library(facts, "libcublas.so.12").error
    assert "No such file" in library(facts, "libcufft.so.11").error
    assert "exit code -6" in ended(facts, "libraries")[1]


def test_a_loaded_cudnn_tells_its_version_and_file(nvidia: Path) -> None:
    host = live(nvidia)
    request = {"libraries": [["cudnn", "libcudnn.so.9"]], "folders": [str(nvidia)]}
    told = start("loading", "child_loader.py", host, request).answers(10.0).one(LibraryTold)
    path = str(nvidia / "libcudnn.so.9")
    assert told == LibraryTold(name="libcudnn.so.9", version=90100, path=path)
