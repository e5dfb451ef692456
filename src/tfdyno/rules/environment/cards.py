"""The cards: hidden, split, virtual, not served by this wheel, or full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import GIB
from tfdyno.core.doctor.machine_facts import GpuFacts
from tfdyno.rules.condition import version_key
from tfdyno.rules.environment.seen import CHOSEN, gpu_evidence, has_gpu, hides_cards, seen

if TYPE_CHECKING:
    from tfdyno.core.choose.software import Knowledge, WheelSupport
    from tfdyno.core.doctor.machine_facts import MachineFacts
    from tfdyno.rules.match import Match

FULL_RATIO = 0.8
"""A card of which others hold more than this is worth a word."""
_LEAST_CAPABILITY = "5.0"
"""Cards below it are too old for every TensorFlow from 2.15 on, not too new."""


def hidden(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find a CUDA_VISIBLE_DEVICES that names no card of this machine."""
    value = facts.environment.get(CHOSEN)
    if value is None or not has_gpu(facts) or not hides_cards(facts):
        return None
    first = value.split(",")[0].strip()
    shown = value or "(empty)"
    evidence = (("environment", f"{CHOSEN}={value}"), gpu_evidence(facts))
    count = "" if facts.gpus is None else str(len(facts.gpus))
    return seen(
        "gpu.visible_devices", "proven", *evidence, visible_devices=shown, wanted=first,
        available=count,
    )  # fmt: skip


def split(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find MIG on and no slice in CUDA, or several chosen, of which one process takes one."""
    cards = [one for one in facts.gpus or () if one.is_mig_enabled]
    chosen = facts.environment.get(CHOSEN, "")
    if not cards or not (facts.driver.init_error or chosen.count("MIG-") > 1):
        return None
    names = ", ".join(f"{one.name} in MIG mode" for one in cards)
    shown = ("environment", f"{CHOSEN}={chosen}") if chosen else ("cuInit", facts.driver.init_error)
    return seen("gpu.mig", "proven", ("NVML", names), shown)


def virtual(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find a slice of a card that a hypervisor hands in, where CUDA does not start."""
    cards = [one for one in facts.gpus or () if one.is_vgpu]
    if not cards or not facts.driver.init_error:
        return None
    evidence = (("NVML", f"{cards[0].name} is a vGPU"), ("cuInit", facts.driver.init_error))
    return seen("gpu.vgpu", "likely", *evidence)


def not_in_wheel(facts: MachineFacts, knowledge: Knowledge) -> Match | None:
    """Find a wheel without code for a card, or with code that the driver must compile first."""
    build = facts.python.build
    is_windows = facts.system == "windows" and not facts.is_wsl
    if is_windows or (build is not None and not build.is_cuda_build):
        return None  # a wheel without CUDA has kernels for no card
    if not _is_official(facts, knowledge):
        return None
    by_slug = {one.slug or one.name: one for one in facts.gpus or ()}
    for verdict in ("cannot", "old", "jit"):
        for support in knowledge.support:
            if verdict in {support.verdict, "old" if support.has_old_libraries else ""}:
                card = by_slug.get(support.gpu, GpuFacts(name=support.gpu))
                return _unserved(card, support, facts)
    return None


def _unserved(card: GpuFacts, support: WheelSupport, facts: MachineFacts) -> Match | None:
    evidence = (
        (card.name or support.gpu, f"compute capability {card.compute_capability}"),
        (f"wheel of TensorFlow {support.tensorflow}", support.detail),
    )
    values = {"gpu": card.name, "capability": card.compute_capability}
    if support.verdict == "cannot":
        old = version_key(card.compute_capability) < version_key(_LEAST_CAPABILITY)
        return seen(f"gpu.arch_too_{'old' if old else 'new'}", "proven", *evidence, **values)
    if support.has_old_libraries:
        return seen("gpu.arch_too_new", "likely", *evidence, **values)
    driver = facts.driver.version
    if driver and support.driver_linux and version_key(driver) < version_key(support.driver_linux):
        told = (("driver", driver), *evidence)
        values |= {"driver": driver, "wheel_driver": support.driver_linux}
        return seen("drv.ptx_too_new", "likely", *told, **values)
    if support.xla_fails:
        values |= {"xla_tensorflow": support.tensorflow}
        return seen("gpu.arch_too_new", "likely", *evidence, **values)
    if support.library_kernels == "sass":
        return None  # what is left costs seconds: 78 kernels took 20 s on an H200, once
    return seen("gpu.arch_jit", "proven", *evidence, **values)


def held(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find other processes that hold most of a card."""
    for card in facts.gpus or ():
        if not card.memory_bytes or not card.processes:
            continue
        if card.memory_used_bytes > FULL_RATIO * card.memory_bytes:
            names = ", ".join(f"{one.name} ({one.pid})" for one in card.processes)
            used = f"{card.memory_used_bytes / GIB:.1f} of {card.memory_bytes / GIB:.1f} GiB"
            return seen(
                "mem.held_by_other_process", "possible", (card.name, f"{used}: {names}"),
                processes=names,
            )  # fmt: skip
    return None


def _is_official(facts: MachineFacts, knowledge: Knowledge) -> bool:
    """Return whether the wheel may be the one for Linux that was taken apart."""
    build, release = facts.python.build, knowledge.release
    if facts.system in {"windows", "macos"} or facts.is_jetson or release is None:
        return False
    if build is None or not release.compute_capabilities:
        return True
    own, cuda = build.compute_capabilities, version_key(build.cuda)[:2]
    if cuda and cuda != version_key(release.cuda):
        return False
    return build.is_cuda_build and (not own or set(own) == set(release.compute_capabilities))


CARD_RULES = (hidden, split, virtual, not_in_wheel, held)
