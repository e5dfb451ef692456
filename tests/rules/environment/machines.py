"""Machines made for tests: a healthy one, and changes to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.doctor.machine_facts import (
    BuildInfo,
    Distribution,
    DriverFacts,
    GpuFacts,
    LibraryFacts,
    MachineFacts,
    ProbeResult,
    Process,
    PythonFacts,
)
from tfdyno.jobs.machine.knowledge import capability_of, knowledge_of
from tfdyno.rules.environment import environment_matches
from tfdyno.rules.explain import diagnose

if TYPE_CHECKING:
    from tfdyno.rules.match import Match

GIB = 1 << 30


def card(name: str = "NVIDIA A100-SXM4-80GB", **rest: Any) -> GpuFacts:
    """A card by its name; slug and capability come from the catalogue."""
    slug, capability = capability_of(name)
    given: dict[str, Any] = {"uuid": "GPU-11112222-3333", "memory_bytes": 80 * GIB}
    return GpuFacts(name=name, slug=slug, compute_capability=capability, **(given | rest))


def package(name: str, version: str) -> Distribution:
    """An installed package."""
    return Distribution(name=name, version=version)


def library(soname: str, **rest: Any) -> LibraryFacts:
    """A library that loads, unless ``error`` says otherwise."""
    path = "" if rest.get("error") else f"/env/nvidia/lib/{soname}"
    return LibraryFacts(soname=soname, path=path, **rest)


PYTHON = PythonFacts(
    version="3.11.9",
    manager="pip",
    distributions=(package("tensorflow", "2.20.0"), package("numpy", "2.1.3")),
    tensorflow_owners=("tensorflow",),
    build=BuildInfo(is_cuda_build=True, cuda="12.5.1", cudnn="9"),
)
DRIVER = DriverFacts(
    version="570.124.06",
    library_version="570.124.06",
    library_path="/usr/lib/x86_64-linux-gnu/libcuda.so.570.124.06",
    cuda="12.8",
)
HEALTHY = MachineFacts(
    system="linux",
    release="Ubuntu 22.04",
    architecture="x86_64",
    is_wsl=False,
    container="none",
    is_jetson=False,
    cpu_flags=("sse2", "avx", "avx2", "fma"),
    python=PYTHON,
    tensorflow="2.20.0",
    pci_gpus=("0000:01:00.0",),
    device_nodes=("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"),
    driver=DRIVER,
    gpus=(card(),),
    libraries=(library("libcudart.so.12"), library("libcudnn.so.9", version="9.3.0")),
    ptxas="/env/nvidia/cuda_nvcc/bin/ptxas",
    libdevice="/env/nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc",
    tools_searched=("/env/nvidia/cuda_nvcc",),
    probes=(ProbeResult(name="distributions", state="ok"),),
)
JOB = Process(pid=4711, name="python", memory_bytes=70 * GIB)


def driver(**rest: Any) -> DriverFacts:
    """The healthy driver, changed."""
    return replace(DRIVER, **rest)


def python(**rest: Any) -> PythonFacts:
    """The healthy Python, changed."""
    return replace(PYTHON, **rest)


def machine(**rest: Any) -> MachineFacts:
    """The healthy machine, changed."""
    return replace(HEALTHY, **rest)


def with_tensorflow(version: str, **rest: Any) -> MachineFacts:
    """The healthy machine with another TensorFlow, whose build is not known."""
    changed = python(build=None, distributions=(package("tensorflow", version),))
    return machine(tensorflow=version, python=changed, **rest)


def matches(facts: MachineFacts) -> dict[str, Match]:
    """What the rules conclude, by cause."""
    return {one.cause: one for one in environment_matches(facts, knowledge_of(facts))}


def causes(facts: MachineFacts) -> list[str]:
    """The findings, the root first."""
    knowledge = knowledge_of(facts)
    found = environment_matches(facts, knowledge)
    return [one.cause for one in diagnose(facts=facts, knowledge=knowledge, found=found).findings]
