from __future__ import annotations

import pytest
from tests.rules.environment.machines import (
    HEALTHY,
    causes,
    driver,
    machine,
    matches,
    with_tensorflow,
)

from tfdyno.core.doctor.machine_facts import DriverFacts

WSL = "/usr/lib/wsl/lib/libcuda.so.1"
COMPAT = "/usr/local/cuda-12.5/compat/libcuda.so.555.42.06"


def test_a_healthy_machine_has_no_finding() -> None:
    assert causes(HEALTHY) == []


def test_no_device_on_the_bus_means_no_gpu_and_nothing_else() -> None:
    facts = machine(pci_gpus=(), device_nodes=(), gpus=(), driver=DriverFacts(), libraries=())
    assert causes(facts) == ["gpu.none"]
    assert "gpu.none" not in matches(machine(pci_gpus=None, device_nodes=None, gpus=None))


def test_a_card_without_a_kernel_driver() -> None:
    facts = machine(driver=DriverFacts(), device_nodes=(), gpus=None)
    assert causes(facts) == ["drv.not_installed"]
    assert "drv.not_installed" not in matches(HEALTHY)


def test_in_a_container_without_devices_the_flag_is_missing_not_the_driver() -> None:
    facts = machine(container="docker", driver=DriverFacts(), device_nodes=(), gpus=None)
    assert causes(facts) == ["ctr.no_gpu_flag"]
    given = machine(container="docker")
    assert causes(given) == []


def test_in_wsl_the_library_must_be_the_one_of_windows() -> None:
    linux = driver(library_path="/usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01")
    wsl = {"is_wsl": True, "pci_gpus": None, "device_nodes": ("/dev/dxg",)}
    assert causes(machine(driver=linux, **wsl)) == ["wsl.driver"]
    assert causes(machine(driver=driver(library_path=WSL), **wsl)) == []


def test_kernel_module_and_library_of_two_versions() -> None:
    found = matches(machine(driver=driver(library_version="560.35.03")))
    assert found["drv.kernel_user_mismatch"].verdict == "proven"
    assert found["drv.kernel_user_mismatch"].values["library_driver"] == "560.35.03"
    assert matches(machine(driver=driver(library_version="570.124.6"))) == {}  # the same numbers


@pytest.mark.parametrize(
    ("tensorflow", "version", "needed"),
    [
        ("2.20.0", "525.60.12", "525.60.13"),
        ("2.14.1", "450.80.01", "450.80.02"),
        ("2.4.0", "450.51", "450.80.02"),
    ],
)
def test_a_driver_one_step_below_the_least_is_too_old(
    tensorflow: str, version: str, needed: str
) -> None:
    old = driver(version=version, library_version=version)
    assert causes(with_tensorflow(tensorflow, driver=old))[0] == "drv.too_old"
    enough = driver(version=needed, library_version=needed)
    assert "drv.too_old" not in matches(with_tensorflow(tensorflow, driver=enough))


def test_wsl_needs_the_driver_of_windows_by_the_windows_table() -> None:
    wsl = {"is_wsl": True, "pci_gpus": None, "device_nodes": ("/dev/dxg",)}
    old = driver(version="528.32", library_version="", library_path=WSL)
    assert "drv.too_old" in matches(machine(driver=old, **wsl))
    enough = driver(version="528.33", library_version="", library_path=WSL)
    assert "drv.too_old" not in matches(machine(driver=enough, **wsl))


def test_forward_compatibility_that_works_is_no_fault() -> None:
    works = driver(version="470.199.02", library_version="555.42.06", library_path=COMPAT,
                   is_forward_compat=True, cuda="12.5")  # fmt: skip
    assert causes(machine(driver=works)) == []


def test_forward_compatibility_that_the_card_refuses_explains_the_old_driver() -> None:
    error = "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"
    refused = driver(version="470.199.02", library_version="555.42.06", library_path=COMPAT,
                     is_forward_compat=True, init_error=error)  # fmt: skip
    assert causes(machine(driver=refused)) == ["drv.forward_compat"]


def test_a_driver_that_does_not_start_is_said_with_its_error() -> None:
    found = matches(machine(driver=driver(init_error="CUDA_ERROR_UNKNOWN")))
    assert found["drv.init_failed"].verdict == "proven"
    assert found["drv.init_failed"].values["error"] == "CUDA_ERROR_UNKNOWN"
    assert "drv.init_failed" not in matches(machine(driver=driver(init_error="")))


def test_a_hidden_card_explains_that_cuda_finds_none() -> None:
    hidden = driver(init_error="CUDA_ERROR_NO_DEVICE")
    facts = machine(driver=hidden, environment={"CUDA_VISIBLE_DEVICES": "-1"})
    assert causes(facts) == ["gpu.visible_devices"]
