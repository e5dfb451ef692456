"""What is known of a machine and its TensorFlow as flat names, for conditions and texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.core.doctor.machine_facts import GpuFacts, MachineFacts
from tfdyno.rules.cuda_files import first_cuda, parse

if TYPE_CHECKING:
    from tfdyno.core.choose.software import Knowledge, Release


def values(facts: MachineFacts, knowledge: Knowledge) -> dict[str, str]:
    """Return every known value by its name; what is unknown is left out.

    The names are those of the rules' reference page: ``system``, ``platform``, ``pip``,
    ``tensorflow``, ``needed_cuda`` and so on.
    """
    found = _of_machine(facts) | _of_software(facts)
    gpu = facts.first_gpu
    found |= {"gpu": gpu.name, "gpu_slug": gpu.slug, "capability": gpu.compute_capability}
    found |= {"gpu_count": "" if facts.gpus is None else str(len(facts.gpus))}
    if knowledge.releases:
        found |= {"newest_tensorflow": knowledge.releases[-1].tensorflow}
    if knowledge.release:
        found |= _of_release(knowledge.release, found["platform"])
    found |= _of_support(facts, knowledge)
    found |= _of_card(found.get("capability", ""), found.get("needed_cuda", ""))
    return {name: value for name, value in found.items() if value}


def minor(version: str) -> str:
    """Return ``2.21`` of ``2.21.0``; empty where there is no such number."""
    numbers = re.match(r"\d+\.\d+", version)
    return numbers[0] if numbers else ""


def _of_machine(facts: MachineFacts) -> dict[str, str]:
    platform: str = facts.system
    if facts.is_wsl:
        platform = "wsl"
    elif facts.is_jetson:
        platform = "jetson"
    manager = facts.python.manager
    return {
        "system": facts.system,
        "platform": platform,
        "release": facts.release,
        "container": facts.container,
        "architecture": facts.architecture,
        "glibc": facts.glibc,
        "manager": manager,
        "pip": "uv pip" if manager == "uv" else "python -m pip",
    }


def _of_software(facts: MachineFacts) -> dict[str, str]:
    installed = facts.python.installed
    tensorflow = facts.tensorflow or installed.get("tensorflow", "")
    build = facts.python.build
    return {
        "tensorflow": tensorflow,
        "tensorflow_minor": minor(tensorflow),
        "python": facts.python.version,
        "python_minor": minor(facts.python.version),
        "keras": facts.keras or installed.get("keras", ""),
        "numpy": installed.get("numpy", ""),
        "protobuf": installed.get("protobuf", ""),
        "cuda": facts.cuda,
        "cuda_major": facts.cuda.partition(".")[0],
        "cudnn": facts.cudnn,
        "driver": facts.driver.version or facts.driver.library_version,
        "driver_cuda": facts.driver.cuda,
        "visible_devices": facts.environment.get("CUDA_VISIBLE_DEVICES", ""),
        "keras_backend": facts.environment.get("KERAS_BACKEND", ""),
        "legacy_keras": facts.environment.get("TF_USE_LEGACY_KERAS", ""),
        "build_cuda": build.cuda if build else "",
        "build_cudnn": build.cudnn if build else "",
    }


def _of_release(release: Release, platform: str) -> dict[str, str]:
    is_windows = platform in {"windows", "wsl"}
    return {
        "needed_cuda": release.cuda,
        "needed_cuda_major": release.cuda.partition(".")[0],
        "needed_cudnn": release.cudnn,
        "needed_cudnn_major": release.cudnn.partition(".")[0],
        "min_driver": release.min_driver_windows if is_windows else release.min_driver_linux,
        "numpy_limit": release.numpy_limit,
        "python_versions": ", ".join(release.python_versions),
        "needed_keras": release.keras,
        "requirement": f"{release.requirement}=={release.last_wheel}",
    }


def _of_card(capability: str, needed_cuda: str) -> dict[str, str]:
    """Say whether the card is newer than the release's CUDA, which then compiles from PTX."""
    first = first_cuda(capability) if capability and needed_cuda else ()
    return {"card_newer_than_cuda": "yes"} if first > parse(needed_cuda) else {}


def _of_support(facts: MachineFacts, knowledge: Knowledge) -> dict[str, str]:
    """Return the values of the card that fares worst."""
    order = ("cannot", "jit", "unknown", "native")
    worst = sorted(knowledge.support, key=lambda one: order.index(one.verdict))
    if not worst:
        return {}
    one = worst[0]
    names = {gpu.slug or gpu.name: gpu for gpu in facts.gpus or ()}
    card = names.get(one.gpu, GpuFacts())
    is_refused = one.verdict == "cannot" and bool(one.smallest_runnable)
    return {
        "wheel_verdict": one.verdict,
        "wheel_detail": one.detail,
        "smallest_native": one.smallest_native,
        "smallest_runnable": one.smallest_runnable,
        "wheel_driver": one.driver_linux,
        "refused_tensorflow": one.tensorflow if is_refused else "",
    } | ({"gpu": card.name, "capability": card.compute_capability} if card.name else {})
