"""A hidden card or a driver that does not start, seen together with the machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tfdyno.core.choose.software import Knowledge
from tfdyno.core.doctor.machine_facts import GpuFacts, MachineFacts
from tfdyno.jobs.machine.knowledge import capability_of, knowledge_of
from tfdyno.rules.causes import all_causes
from tfdyno.rules.explain import diagnose
from tfdyno.rules.log.explained import scan
from tfdyno.rules.told import machine_from_told, told_by_log

NO_DEVICE = "failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
NO_KERNEL = (
    "kernel driver does not appear to be running on this host ({}): "
    "/proc/driver/nvidia/version does not exist"
)
NO_LIBCUDA = "failed call to cuInit: UNKNOWN ERROR (303)"


def causes(log: str, facts: MachineFacts | None = None, **told: Any) -> list[str]:
    """The causes, the root first."""
    seen = scan([log], all_causes())
    machine = facts or told_by_log(seen, machine_from_told(told, capability_of), capability_of)
    knowledge = Knowledge() if facts else knowledge_of(machine)
    return [one.cause for one in diagnose(log=seen, facts=machine, knowledge=knowledge).findings]


@pytest.mark.parametrize("line", [NO_DEVICE, NO_KERNEL.format("host"), NO_LIBCUDA])
def test_in_wsl_the_driver_of_windows_is_meant(line: str) -> None:
    assert causes(line, os="WSL2") == ["wsl.driver"]


def test_a_windows_host_name_in_a_linux_log_is_wsl() -> None:
    assert causes(f"{NO_DEVICE}\n{NO_KERNEL.format('DESKTOP-4QK2T1R')}") == ["wsl.driver"]


def test_a_linux_host_without_a_kernel_driver_has_none_installed() -> None:
    assert causes(f"{NO_DEVICE}\n{NO_KERNEL.format('node17')}", os="Ubuntu") == [
        "drv.not_installed"
    ]


@pytest.mark.parametrize("line", [NO_DEVICE, NO_KERNEL.format("70ca2b2c5a5d"), NO_LIBCUDA])
@pytest.mark.parametrize("system", ["docker", "Kubernetes", "Colab"])
def test_in_a_container_the_gpu_was_not_handed_in(line: str, system: str) -> None:
    assert causes(line, os=system) == ["ctr.no_gpu_flag"]


def test_a_message_of_the_engine_is_about_its_host() -> None:
    line = "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown"
    assert causes(line, os="docker") == ["drv.not_installed"]


@pytest.mark.parametrize("value", ["-1", "1", "3,0"])
def test_a_card_that_does_not_exist_is_asked_for(value: str) -> None:
    assert causes(NO_DEVICE, cuda_visible_devices=value, gpu_count=1) == ["gpu.visible_devices"]


def test_a_card_that_exists_is_no_reason() -> None:
    assert causes(NO_DEVICE, cuda_visible_devices="0", gpu_count=2) == ["drv.init_failed"]


def test_two_driver_versions_are_the_cause_of_what_follows() -> None:
    log = (
        f"{NO_DEVICE}\nlibcuda reported version is: 375.66.0\nkernel reported version is: 384.130.0"
    )
    assert causes(log) == ["drv.kernel_user_mismatch"]


def test_one_driver_version_is_no_mismatch() -> None:
    log = "failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error\n" + (
        "libcuda reported version is: 352.63\nkernel reported version is: 352.63.0"
    )
    assert causes(log) == ["drv.init_failed"]


def test_a_driver_below_the_need_of_the_release_is_too_old() -> None:
    log = "failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error"
    assert causes(log, tf="2.15", driver="470.82.01", os="Ubuntu")[0] == "drv.too_old"
    assert causes(log, tf="2.15", driver="535.54.03", os="Ubuntu") == ["drv.init_failed"]


def test_mig_and_vgpu_are_named_where_they_are_the_cause() -> None:
    card = GpuFacts(name="NVIDIA A100-SXM4-40GB", is_mig_enabled=True)
    machine = MachineFacts(system="linux", gpus=(card,))
    assert causes(NO_DEVICE, machine) == ["gpu.mig"]
    guest = GpuFacts(name="NVIDIA A100-40C", is_vgpu=True)
    assert causes(NO_DEVICE, replace(machine, gpus=(guest,))) == ["gpu.vgpu"]
    plain = GpuFacts(name="NVIDIA A100-SXM4-40GB")
    assert causes(NO_DEVICE, replace(machine, gpus=(plain,))) == ["drv.init_failed"]


@pytest.mark.parametrize(
    "line",
    [
        "|   0  GRID A100-10C      On   | 00000000:02:00.0 Off |",
        "|   0  NVIDIA A10-24Q     On   | 00000000:02:00.0 Off |",
        "|   0  NVIDIA A100-1-5C   On   | 00000000:02:00.0 Off |",
        "|    0   N/A  N/A   1021   C   /usr/bin/nvidia-gridd    12MiB |",
        "vGPU Software Licensed Product",
    ],
)
def test_a_log_names_a_virtual_gpu_where_cuda_does_not_start(line: str) -> None:
    assert causes(f"{line}\n{NO_DEVICE}\n") == ["gpu.vgpu"]
    assert causes(f"{line}\nEpoch 1/5 loss: 0.3\n") == []


def test_an_unlicensed_virtual_gpu_needs_no_further_evidence() -> None:
    line = "nvidia-gridd[812]: Failed to acquire license from 10.0.0.1 (Error: no response)"
    assert causes(line) == ["gpu.vgpu"]


@pytest.mark.parametrize(
    "line",
    [
        "grid search over 40 points, folds A10-12",
        "GridSearchCV(estimator=net) failed",
        "vgpu = visible_gpus[0]",
        "the meshgrid of the avgpus",
        "name: NVIDIA A100-SXM4-40GB, pci bus id: 0000:00:04.0, compute capability: 8.0",
    ],
)
def test_words_like_it_make_no_virtual_gpu(line: str) -> None:
    assert causes(f"{line}\n{NO_DEVICE}\n") == ["drv.init_failed"]


def test_a_machine_without_a_card_has_no_fault() -> None:
    machine = MachineFacts(system="linux", pci_gpus=(), gpus=(), container="none")
    assert causes(f"{NO_LIBCUDA}\n{NO_KERNEL.format('laptop')}", machine) == ["gpu.none"]
    other = replace(machine, pci_gpus=("0000:01:00.0",), gpus=None)
    assert causes(f"{NO_LIBCUDA}\n{NO_KERNEL.format('laptop')}", other) == ["drv.not_installed"]


def test_a_message_without_gpu_says_nothing() -> None:
    assert causes("Epoch 1/10 loss: 0.3") == []


@pytest.mark.parametrize("value", ["9" * 5000, "²", "{x}", ""])
def test_no_value_of_the_variable_is_an_error(value: str) -> None:
    assert causes(NO_DEVICE, cuda_visible_devices=value, gpu_count=2)
