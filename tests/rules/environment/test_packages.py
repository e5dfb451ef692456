from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.environment.machines import (
    HEALTHY,
    causes,
    machine,
    matches,
    package,
    python,
    with_tensorflow,
)

from tfdyno.core.doctor.machine_facts import BuildInfo, ChildFacts, MachineFacts

CPU = BuildInfo(is_cuda_build=False)


def broken(*requirements: str, tensorflow: str = "2.20.0") -> MachineFacts:
    facts = with_tensorflow(tensorflow)
    return replace(facts, python=replace(facts.python, broken_requirements=requirements))


def test_an_interpreter_without_tensorflow() -> None:
    bare = python(distributions=(), build=None, tensorflow_owners=())
    facts = machine(tensorflow="", python=bare)
    assert causes(facts) == ["py.wrong_interpreter"]
    assert matches(replace(facts, probes=())) == {}  # nobody looked


def test_a_tensorflow_without_metadata_is_one() -> None:
    bare = python(distributions=(), build=None, tensorflow_owners=(), tensorflow_folder="/x/tf")
    assert causes(machine(tensorflow="", python=bare)) == []


@pytest.mark.parametrize("second", ["tensorflow-cpu", "tensorflow-gpu", "tf-nightly"])
def test_two_packages_in_one_folder(second: str) -> None:
    facts = machine(python=python(tensorflow_owners=("tensorflow", second)))
    assert causes(facts) == ["pkg.mixed_install"]


@pytest.mark.parametrize("part", ["tensorflow-intel", "tensorflow-cpu-aws", "tensorflow-macos"])
def test_what_tensorflow_itself_brings_is_no_second_package(part: str) -> None:
    assert matches(machine(python=python(tensorflow_owners=("tensorflow", part)))) == {}


def test_numpy_2_with_a_tensorflow_made_for_numpy_1_is_proven() -> None:
    facts = broken("numpy<2.0.0,>=1.23.5 (installed 2.0.1)", tensorflow="2.16.1")
    assert matches(facts)["pkg.numpy_abi"].verdict == "proven"
    facts = broken("numpy<2.2.0,>=1.26.0 (installed 2.3.1)", tensorflow="2.19.0")
    assert matches(facts)["pkg.numpy_abi"].verdict == "likely"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("protobuf<6,>=3.20.3 (installed 6.31.0)", "pkg.protobuf_clash"),
        ("keras>=3.10.0 (installed 2.15.0)", "pkg.keras_mismatch"),
        ("ml-dtypes<1.0.0,>=0.5.1 (installed 0.3.2)", "pkg.dependency_clash"),
        ("wrapt>=1.11.0 (not installed)", "pkg.dependency_clash"),
    ],
)
def test_a_broken_requirement_is_told_by_its_package(text: str, cause: str) -> None:
    assert causes(broken(text)) == [cause]


def test_what_is_not_installed_is_no_error_where_tensorflow_was_imported_without_it() -> None:
    """An H200 of 2026-11-27: libclang was missing, and all worked."""
    facts = broken("libclang>=13.0.0 (not installed)")
    told = next(iter(matches(facts).values()))
    assert dict(told.values)["absent"] == "libclang"
    assert causes(replace(facts, child=ChildFacts(import_s=3.0))) == []
    failed = ChildFacts(import_s=0.5, failed="import", error="No module named 'wrapt'")
    assert causes(replace(facts, child=failed)) == ["pkg.dependency_clash"]


def test_another_version_than_asked_for_is_a_warning_where_tensorflow_was_imported_with_it() -> (
    None
):
    """An H200 of 2026-11-27: h5py 3.16 beside TensorFlow 2.21."""
    child = ChildFacts(import_s=3.0)
    facts = broken("h5py<3.15.0,>=3.11.0 (installed 3.16.0)")
    assert causes(facts) == ["pkg.h5py_version"]
    told = matches(replace(facts, child=child))["pkg.outside_range"]
    assert dict(told.values) == {"culprit": "h5py", "found": "3.16.0"}
    keras = broken("keras>=3.10.0 (installed 2.15.0)")  # imported when it is first used
    assert causes(replace(keras, child=child)) == ["pkg.keras_mismatch"]
    cuda = broken("nvidia-cudnn-cu12==9.3.0.75 (installed 9.5.1.17)")
    assert causes(replace(cuda, child=child)) == []


def test_a_cuda_package_of_another_version_is_judged_by_what_loads() -> None:
    assert matches(broken("nvidia-cudnn-cu12==9.3.0.75 (installed 9.5.1.17)")) == {}


@pytest.mark.parametrize(("version", "cause"), [("2.12.0", ["win.native_no_gpu"]), ("2.10.1", [])])
def test_native_windows_after_2_10_has_no_gpu(version: str, cause: list[str]) -> None:
    facts = with_tensorflow(version, system="windows", libraries=(), tools_searched=())
    assert causes(facts) == cause


def test_the_same_in_wsl_is_linux() -> None:
    assert "win.native_no_gpu" not in matches(machine(is_wsl=True))


def test_a_cpu_build_where_there_is_a_card() -> None:
    facts = machine(python=python(build=CPU))
    assert causes(facts) == ["pkg.cpu_only_build"]
    assert causes(replace(facts, architecture="aarch64")) == ["arm.no_gpu_wheel"]
    no_card = replace(facts, pci_gpus=(), gpus=(), device_nodes=())
    assert causes(no_card) == ["gpu.none"]


def test_a_mac_without_metal() -> None:
    mac = {"system": "macos", "pci_gpus": None, "gpus": None, "device_nodes": None}
    facts = with_tensorflow("2.16.2", **mac, libraries=(), tools_searched=(), architecture="arm64")
    assert causes(facts) == ["mac.no_cuda"]
    metal = (*facts.python.distributions, package("tensorflow-metal", "1.2.0"))
    assert causes(replace(facts, python=replace(facts.python, distributions=metal))) == []


def test_a_processor_without_avx() -> None:
    assert "cpu.no_avx" in matches(machine(cpu_flags=("sse2",)))
    assert matches(machine(cpu_flags=())) == {}  # not known
    assert matches(HEALTHY) == {}
