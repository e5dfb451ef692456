"""Code for a card: compiled at the first run, too new, too old, or not in the build."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.core.doctor.machine_facts import BuildInfo
from tfdyno.jobs.machine.knowledge import capability_of, knowledge_of
from tfdyno.rules.causes import all_causes
from tfdyno.rules.explain import diagnose
from tfdyno.rules.log.explained import scan
from tfdyno.rules.told import machine_from_told, told_by_log

if TYPE_CHECKING:
    from tfdyno.core.doctor.finding import Finding

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


PTX = "LLVM ERROR: PTX version {} does not support target 'sm_{}'. Minimum required PTX is 8.7."


@pytest.mark.parametrize("tensorflow", ["2.21.0", "2.22.0"])
@pytest.mark.parametrize(
    ("gpu", "sm"),
    [("RTX 5060 Ti", "120"), ("RTX 5080", "120a"), ("RTX PRO 6000 Blackwell", "120"),
     ("B200", "100"), ("B300", "103a"), ("4x RTX 5090 32GB", "120"),
     ("RTX PRO 1000 Blackwell Generation Laptop GPU", "120"), ("", "120")],
)  # fmt: skip
def test_where_xla_is_older_than_the_card_the_first_fix_is_to_leave_it(
    gpu: str, sm: str, tensorflow: str
) -> None:
    (said,) = findings(PTX.format("8.5", sm), tf=tensorflow, gpu=gpu)
    assert (said.cause, said.verdict) == ("gpu.arch_too_new", "proven")
    assert f"XLA of TensorFlow {tensorflow[:4]}, the default of fit in Keras 3" in said.summary
    assert said.fix[0].command == "model.compile(..., jit_compile=False)"
    assert "nvcr.io/nvidia/tensorflow" in said.fix[1].command
    assert "12.8 or later" in said.fix[1].text
    assert not any("nvcc" in step.command for step in said.fix)
    assert "smaller of the CUDA that it was built with and of ptxas" in said.why
    assert "no code that the card accepts" not in said.summary + said.why
    assert "a newer ptxas does not help" in said.why


@pytest.mark.parametrize("tensorflow", ["2.16.2", "2.17.1", "2.18.1", "2.19.0", "2.20.0"])
@pytest.mark.parametrize(("gpu", "sm"), [("RTX 5070", "120"), ("B200", "100")])
def test_where_the_wheel_is_refused_too_the_first_fix_is_one_that_runs(
    gpu: str, sm: str, tensorflow: str
) -> None:
    (said,) = findings(PTX.format("8.3", sm), tf=tensorflow, gpu=gpu)
    assert "its wheel has no code that the card accepts" in said.summary
    assert "so that of " + tensorflow[:4] in said.why
    assert "jit_compile=False" in said.fix[0].text
    assert "tensorflow[and-cuda]>=2.21" in said.fix[0].command
    assert "nvcr.io/nvidia/tensorflow" in said.fix[1].command


def test_a_host_without_a_wheel_is_sent_to_the_container() -> None:
    (said,) = findings(PTX.format("8.5", "100"), tf="2.21.0", gpu="GB200")
    assert "nvcr.io/nvidia/tensorflow" in said.fix[0].command
    assert not any("tensorflow[and-cuda]" in step.command for step in said.fix)


@pytest.mark.parametrize(
    ("line", "capability"),
    [
        (PTX.format("8.5", "120"), "12.0"),
        ("LLVM ERROR: ptx88 is required for target sm_103", "10.3"),
        ("Reason: PTX version 8.6 does not support target 'sm_121a'.", "12.1"),
    ],
)
def test_a_log_alone_tells_the_card_by_the_target(line: str, capability: str) -> None:
    (said,) = findings(line)
    assert f"compute capability {capability}" in said.summary
    assert "jit_compile=False" in said.fix[0].text


def test_a_newer_ptxas_helps_a_build_with_a_newer_cuda_alone() -> None:
    seen = scan([PTX.format("8.5", "120")], all_causes())
    build = BuildInfo(is_cuda_build=True, cuda="12.8.1", cudnn="9")
    facts = machine_from_told({"tf": "2.21.0", "gpu": "RTX 5080"}, capability_of)
    own = replace(facts, python=replace(facts.python, build=build))
    (said,) = diagnose(log=seen, facts=own, knowledge=knowledge_of(own)).findings
    assert "built with CUDA 12.8.1" in said.fix[0].text
    assert "nvidia-cuda-nvcc-cu12>=12.8" in said.fix[0].command


def test_a_warning_of_first_compilation_alone_says_that_xla_fails_there() -> None:
    (said,) = findings(NOT_BUILT.format("12.0a"), tf="2.21.0")
    assert said.cause == "gpu.arch_jit"
    assert "XLA, the default of fit in Keras 3, does not work" in said.why
    assert said.fix[0].command == "model.compile(..., jit_compile=False)"
    (hopper,) = findings(NOT_BUILT.format("9.0"), tf="2.15.0")
    assert "XLA" not in hopper.why + hopper.fix[0].text


def test_a_card_of_before_is_told_the_cuda_that_knows_it() -> None:
    line = "ptxas fatal   : Value 'sm_86' is not defined for option 'gpu-name'"
    (said,) = findings(line, tf="2.3.0", gpu="RTX 3090")
    assert "compute capability 8.6 from 11.1 on" in said.why
    assert "jit_compile" not in " ".join(f"{step.text}{step.command}" for step in said.fix)


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
