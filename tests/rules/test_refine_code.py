"""Code for a card: compiled at the first run, too new, too old, or not in the build."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.jobs._knowledge import capability_of, knowledge_of
from tfdyno.rules.causes import all_causes
from tfdyno.rules.explain import diagnose
from tfdyno.rules.log import scan
from tfdyno.rules.told import machine_from_told, told_by_log

if TYPE_CHECKING:
    from tfdyno.core.finding import Finding

NOT_BUILT = (
    "TensorFlow was not built with CUDA kernel binaries compatible with compute capability {}. "
    "CUDA kernels will be jit-compiled from PTX, which could take 30 minutes or longer."
)
HANDLE = "'cuLaunchKernel(function, gridX)' failed with 'CUDA_ERROR_INVALID_HANDLE'"
OWN = ("gpu.", "drv.", "sym.")


def findings(log: str, **told: Any) -> list[Finding]:
    """What the doctor says of cards and drivers."""
    seen = scan([log], all_causes())
    facts = told_by_log(seen, machine_from_told(told, capability_of), capability_of)
    said = diagnose(log=seen, facts=facts, knowledge=knowledge_of(facts)).findings
    return [one for one in said if one.cause.startswith(OWN)]


def causes(log: str, **told: Any) -> list[str]:
    """The causes, the root first."""
    return [one.cause for one in findings(log, **told)]


@pytest.mark.parametrize(
    ("capability", "tensorflow", "cause"),
    [
        ("9.0", "2.15.0", "gpu.arch_jit"),
        ("5.3", "2.9", "gpu.arch_jit"),
        ("12.0", "2.19.0", "gpu.arch_too_new"),
        ("10.0", "2.18.0", "gpu.arch_too_new"),
        ("12.0", "2.21.0", "gpu.arch_jit"),
        ("12.0", "", "gpu.arch_too_new"),
    ],
)
def test_the_release_decides_whether_a_card_can_run(
    capability: str, tensorflow: str, cause: str
) -> None:
    assert causes(NOT_BUILT.format(capability), tf=tensorflow) == [cause]


def test_a_refused_kernel_proves_that_the_card_is_too_new() -> None:
    said = findings(f"{NOT_BUILT.format('12.0')}\n{HANDLE}", tf="2.21.0.dev20250722")
    assert [one.cause for one in said] == ["gpu.arch_too_new"]
    assert said[0].verdict == "proven"


def test_a_refused_kernel_of_a_hopper_card_does_not_make_it_too_new() -> None:
    assert causes(NOT_BUILT.format("9.0"), tf="2.15") == ["gpu.arch_jit"]


def test_ptx_that_the_driver_does_not_know_is_the_fault_of_the_driver() -> None:
    log = "'cuModuleLoadData(&module, data)' failed with 'CUDA_ERROR_UNSUPPORTED_PTX_VERSION'\n"
    assert causes(log + HANDLE, tf="2.18.0", gpu="T4") == ["drv.ptx_too_new"]


def test_old_tensorflow_compiles_for_a_newer_card_without_a_word() -> None:
    log = (
        "Successfully opened dynamic library libcudart.so.10.1\n"
        "pciBusID: 0000:73:00.0 name: GeForce RTX 3080 computeCapability: 8.6"
    )
    assert causes(log) == ["gpu.arch_jit"]
    assert causes(log.replace("10.1", "11.0").replace("8.6", "8.0")) == []


@pytest.mark.parametrize(
    ("card", "cuda", "cause"),
    [
        ("A100-SXM4-40GB", "10.1", "gpu.arch_too_new"),
        ("GTX 1070", "10.1", "gpu.arch_not_in_build"),
        ("RTX 5090", "12.5", "gpu.arch_too_new"),
    ],
)
def test_no_kernel_image_is_judged_by_the_card(card: str, cuda: str, cause: str) -> None:
    log = "CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image is available for execution on the device"
    assert causes(log, tf="2.4.1", gpu=card, cuda=cuda) == [cause]


def test_a_card_below_the_limit_is_too_old_and_the_limit_is_named() -> None:
    said = findings(
        "Ignoring visible gpu device (device: 0, name: Tesla K80, compute capability: 3.7) with"
        " Cuda compute capability 3.7. The minimum required Cuda capability is 6.0."
    )
    assert [one.cause for one in said] == ["gpu.arch_too_old"]
    assert "3.7" in said[0].summary
    assert "6.0" in said[0].summary


def test_a_card_of_another_maker_is_not_judged() -> None:
    assert causes("Ignoring visible gpu device (device: 0) with AMDGPU version : gfx1100.") == []
