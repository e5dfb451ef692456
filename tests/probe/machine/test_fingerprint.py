from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import pytest
from tests.probe.fake_nvml import FakeNvml, NoNvml, nvml_is, on

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.measure.measurement import Card, Environment
from tfdyno.probe.base.host import Host
from tfdyno.probe.machine import fingerprint
from tfdyno.probe.machine.fingerprint import environment

if TYPE_CHECKING:
    from tests.probe.conftest import Build

    from tfdyno.core.measure.software import Software

SOFTWARE: Software = {
    "tensorflow": "2.21.0",
    "keras": "3.15.1",
    "python": "3.11.7",
    "cuda": "12.5.1",
    "cudnn": "9",
}
MACHINE = {
    "/proc/cpuinfo": "model name\t: AMD EPYC 7B13\n",
    "/proc/meminfo": "MemTotal:       33554432 kB\n",
    "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
    "550.54.14  Release Build\n",
    "/etc/os-release": 'NAME="Debian GNU/Linux"\nVERSION_ID="12"\n',
    "/.dockerenv": "",
}


def test_a_machine_with_a_gpu_is_told_whole(build: Build) -> None:
    host = build(MACHINE, version="6.1.0-13-amd64", environment={"CUDA_VISIBLE_DEVICES": "1"})
    told: Software = {**SOFTWARE, "device": "gpu"}
    with nvml_is(FakeNvml(2)):
        found = environment(told, slug_of=lambda name: "h100" * ("H100" in name), host=host)
    (card,) = found.cards
    assert (card.slug, card.power_limit_w, card.ecc, card.mig) == ("h100", 700.0, True, False)
    assert found == Environment(
        device="gpu",
        cards=(card,),
        driver="550.54.14",
        cuda="12.5.1",
        cudnn="9",
        tensorflow="2.21.0",
        keras="3.15.1",
        python="3.11.7",
        tfdyno=found.tfdyno,
        system="Linux 6.1 (Debian GNU/Linux 12)",
        host=platform.node(),
        container="docker",
        cpu="AMD EPYC 7B13",
        cpu_count=found.cpu_count,
        memory_bytes=32 << 30,
    )
    assert found.cpu_count >= 1


def test_a_run_on_the_cpu_has_neither_cards_nor_driver(build: Build) -> None:
    nvml = FakeNvml()
    found = on(nvml, environment, {**SOFTWARE, "device": "cpu"}, host=build(MACHINE))
    assert (found.device, found.cards, found.driver) == ("cpu", (), "")


def test_without_nvml_the_child_names_the_cards_and_the_kernel_the_driver(build: Build) -> None:
    software: Software = {**SOFTWARE, "device": "gpu", "devices": ["Orin"]}
    found = on(NoNvml(), environment, software, host=build(MACHINE))
    assert found.cards == (Card(name="Orin"),)
    assert found.driver == "550.54.14"


@pytest.mark.parametrize(
    ("software", "expected"),
    [
        ({"device": "gpu"}, "gpu"),
        ({"device": "cpu", "devices": ["/physical_device:GPU:0"]}, "cpu"),
        ({"devices": ["/physical_device:CPU:0", "/physical_device:GPU:0"]}, "gpu"),
        ({"devices": []}, "cpu"),
        ({}, "cpu"),
    ],
)
def test_the_device_is_what_the_child_says(software: Software, expected: str) -> None:
    assert fingerprint.device_of(software) == expected


@pytest.mark.parametrize(
    ("files", "variables", "expected"),
    [
        ({}, {}, ""),
        ({}, {"TFDYNO_CONTAINER_IMAGE": "tensorflow/tensorflow:2.21.0-gpu"},
         "tensorflow/tensorflow:2.21.0-gpu"),
        ({"/run/.containerenv": 'engine="podman-4.3"\nimage="docker.io/a/b:1"\n'}, {},
         "docker.io/a/b:1"),
        ({"/run/.containerenv": ""}, {}, ""),
        ({}, {"APPTAINER_CONTAINER": "/home/me/tf.sif"}, "tf.sif"),
    ],
)  # fmt: skip
def test_the_image_is_known_where_something_tells_it(
    build: Build, files: dict[str, str], variables: dict[str, str], expected: str
) -> None:
    assert fingerprint.container_image(build(files, environment=variables)) == expected


def test_a_machine_outside_of_a_container_says_so(build: Build) -> None:
    assert fingerprint.container(build({"/proc/1/cgroup": "0::/init.scope"})) == ""
    assert fingerprint.container(Host(system="windows")) == ""


def test_other_systems_have_their_own_names(build: Build) -> None:
    windows = Host(system="windows", version="10.0.22631")
    assert fingerprint.system_name(windows) == "Windows 10.0 (Windows 11)"
    assert fingerprint.system_name(build({}, version="6.1.0")) == "Linux 6.1"
    assert fingerprint.system_name(Host(root=build({}).root, system="")) == ""


def test_this_machine_has_a_fingerprint_that_survives_json() -> None:
    found = environment(SOFTWARE)
    assert found.cpu
    assert found.cpu_count >= 1
    assert found.memory_bytes > 1 << 28
    assert from_json(to_json(found), Environment) == found
