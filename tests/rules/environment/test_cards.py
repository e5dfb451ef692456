from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.environment.machines import (
    GIB,
    HEALTHY,
    JOB,
    PYTHON,
    card,
    causes,
    driver,
    machine,
    matches,
    with_tensorflow,
)

from tfdyno.core.doctor.machine_facts import BuildInfo, MachineFacts


def visible(value: str) -> MachineFacts:
    return machine(environment={"CUDA_VISIBLE_DEVICES": value})


@pytest.mark.parametrize("value", ["", "-1", "1", "7,0", "NoDevFiles", "GPU-99", "-1,0", " "])
def test_a_variable_that_names_no_card_hides_them(value: str) -> None:
    assert causes(visible(value)) == ["gpu.visible_devices"]


@pytest.mark.parametrize("value", ["0", "0,1", "GPU-1111", "GPU-11112222-3333", "MIG-1", "²", "x"])
def test_a_variable_that_names_a_card_or_cannot_be_judged_does_not(value: str) -> None:
    assert "gpu.visible_devices" not in matches(visible(value))


def test_nothing_is_hidden_where_the_count_of_cards_is_unknown() -> None:
    facts = replace(visible("3"), gpus=None)
    assert "gpu.visible_devices" not in matches(facts)


def test_mig_without_a_slice_is_the_cause() -> None:
    facts = machine(
        gpus=(card(is_mig_enabled=True),), driver=driver(init_error="CUDA_ERROR_NO_DEVICE")
    )
    assert causes(facts) == ["gpu.mig"]


def test_two_slices_for_one_process_are_one_too_many() -> None:
    facts = machine(
        gpus=(card(is_mig_enabled=True),),
        environment={"CUDA_VISIBLE_DEVICES": "MIG-aaa,MIG-bbb"},
    )
    assert causes(facts) == ["gpu.mig"]


def test_one_slice_is_healthy() -> None:
    facts = machine(
        gpus=(card(is_mig_enabled=True),), environment={"CUDA_VISIBLE_DEVICES": "MIG-aaa"}
    )
    assert causes(facts) == []


def test_a_vgpu_whose_cuda_does_not_start_is_the_cause() -> None:
    virtual = (card("NVIDIA A100-SXM4-80GB", is_vgpu=True),)
    broken = machine(gpus=virtual, driver=driver(init_error="CUDA_ERROR_NOT_SUPPORTED"))
    assert causes(broken) == ["gpu.vgpu"]
    assert causes(machine(gpus=virtual)) == []


def test_an_rtx_5090_finds_no_code_in_2_20() -> None:
    facts = machine(gpus=(card("NVIDIA GeForce RTX 5090"),))
    found = matches(facts)["gpu.arch_too_new"]
    assert (found.verdict, found.values["capability"]) == ("proven", "12.0")
    assert causes(facts) == ["gpu.arch_too_new"]


@pytest.mark.parametrize("tensorflow", ["2.21.0", "2.22.0rc0"])
@pytest.mark.parametrize("name", ["NVIDIA GeForce RTX 5090", "NVIDIA GeForce RTX 5060 Ti", "B200"])
def test_a_card_newer_than_the_cuda_of_xla_is_told_to_leave_it(name: str, tensorflow: str) -> None:
    facts = with_tensorflow(tensorflow, gpus=(card(name),), libraries=())
    found = matches(facts)["gpu.arch_too_new"]
    assert (found.verdict, found.values["xla_tensorflow"]) == ("likely", tensorflow[:4])
    assert causes(facts) == ["gpu.arch_too_new"]


def test_a_build_of_ones_own_with_a_newer_cuda_is_not_judged_by_the_wheel() -> None:
    build = BuildInfo(is_cuda_build=True, cuda="12.8.1", cudnn="9")
    facts = with_tensorflow("2.21.0", gpus=(card("NVIDIA GeForce RTX 5090"),))
    own = replace(facts, python=replace(facts.python, build=build))
    assert not {cause for cause in matches(own) if cause.startswith("gpu.")}


def test_a_card_that_the_catalogue_has_not_is_judged_by_its_capability() -> None:
    name = "NVIDIA RTX PRO 1000 Blackwell Generation Laptop GPU"
    laptop = replace(card(name), compute_capability="12.0")
    assert not laptop.slug
    found = matches(with_tensorflow("2.20.0", gpus=(laptop,)))["gpu.arch_too_new"]
    assert found.evidence[0].source == laptop.name


def test_blackwell_with_cuda_11_is_named_too_though_its_kernels_could_be_compiled() -> None:
    facts = with_tensorflow("2.12.0", gpus=(card("NVIDIA GeForce RTX 5090"),), libraries=())
    assert causes(facts) == ["gpu.arch_too_new"]


@pytest.mark.parametrize(
    ("tensorflow", "version", "cause"),
    [
        ("2.18.0", "535.183.01", "drv.ptx_too_new"),  # its PTX 8.3 came with driver 545
        ("2.18.0", "545.23.06", ""),
        ("2.20.0", "550.54.14", "drv.ptx_too_new"),  # PTX 8.5: driver 555
        ("2.20.0", "555.42.02", ""),
        ("2.16.2", "525.85.12", ""),  # PTX 8.0: driver 525
    ],
)
def test_an_h100_needs_the_driver_of_the_wheels_ptx(
    tensorflow: str, version: str, cause: str
) -> None:
    cards = (card("NVIDIA H100 80GB HBM3"),)
    facts = with_tensorflow(
        tensorflow, gpus=cards, driver=driver(version=version, library_version=version),
        libraries=(),
    )  # fmt: skip
    assert causes(facts) == ([cause] if cause else [])


def test_a_pascal_finds_its_code_in_2_20() -> None:
    found = matches(machine(gpus=(card("Tesla P100-PCIE-16GB"),)))
    assert not {cause for cause in found if cause.startswith("gpu.")}


def test_a_build_with_code_of_its_own_is_not_judged_by_the_official_wheel() -> None:
    build = BuildInfo(is_cuda_build=True, compute_capabilities=("sm_120",))
    facts = machine(gpus=(card("NVIDIA GeForce RTX 5090"),), python=replace(PYTHON, build=build))
    assert causes(facts) == []


def test_the_code_of_the_wheel_is_no_matter_on_windows() -> None:
    facts = with_tensorflow("2.10.1", system="windows", gpus=(card("NVIDIA GeForce RTX 4090"),))
    assert not {cause for cause in matches(facts) if cause.startswith("gpu.arch")}


def test_a_card_that_others_fill_is_named_with_the_process() -> None:
    full = card(memory_used_bytes=72 * GIB, processes=(JOB,))
    found = matches(machine(gpus=(full,)))["mem.held_by_other_process"]
    assert found.values["processes"] == "python (4711)"
    half = card(memory_used_bytes=40 * GIB, processes=(JOB,))
    assert matches(machine(gpus=(half,))) == {}
    assert matches(HEALTHY) == {}
