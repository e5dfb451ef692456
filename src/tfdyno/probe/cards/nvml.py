"""Cards as NVML or the driver tells them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.doctor.machine_facts import GpuFacts, MachineFacts, Process
from tfdyno.probe.base.attempt import Part, failed, found, not_run
from tfdyno.probe.base.driver import readable_cuda
from tfdyno.probe.base.pci import no_device

if TYPE_CHECKING:
    from tfdyno.core.messages.nvidia import CardTold
    from tfdyno.probe.base.children import Answers
    from tfdyno.probe.base.host import Host

WINDOWS_LIBRARIES = ("nvml.dll", r"C:\Program Files\NVIDIA Corporation\NVSMI\nvml.dll")


def names(facts: MachineFacts) -> list[str]:
    """Return what the loader is asked for, in turn."""
    if facts.system == "windows":
        return list(WINDOWS_LIBRARIES)
    return ["libnvidia-ml.so.1", *(["/usr/lib/wsl/lib/libnvidia-ml.so.1"] if facts.is_wsl else [])]


def nvml(_host: Host, facts: MachineFacts, answers: Answers, by_cuda: Answers) -> Part:
    """Return the cards, their memory and who holds it.

    Args:
        facts: Found so far.
        answers: Of the child that asked NVML.
        by_cuda: Of the child that asked the driver: it names the cards where there is no NVML.
    """
    if not answers.started:
        nothing = {"gpus": ()} if facts.pci_gpus == facts.device_nodes == () else {}
        return not_run(answers.reason or no_device(facts), **nothing)
    from tfdyno.core.messages.nvidia import CardTold, NvmlTold  # only where there is a card

    head, told = answers.one(NvmlTold), answers.every(CardTold)
    if head is None or head.error:
        why = head.error if head else answers.reason or "it told nothing"
        cards = tuple(map(card, by_cuda.every(CardTold)))
        return failed(f"NVML: {why}", **({"gpus": cards} if cards else {}))
    driver = replace(
        facts.driver,
        version=facts.driver.version or head.driver,
        cuda=facts.driver.cuda or readable_cuda(head.cuda),
    )
    cards = tuple(card(one) for one in told if not one.error)
    lost = [one.error for one in told if one.error]
    why = answers.reason or (f"NVML: a card does not answer: {lost[0]}" if lost else "")
    return failed(why, gpus=cards, driver=driver) if why else found(gpus=cards, driver=driver)


def card(told: CardTold) -> GpuFacts:
    """Return one card from an answer of a child."""
    return GpuFacts(
        name=told.card,
        compute_capability=told.capability,
        uuid=told.uuid,
        memory_bytes=told.memory_bytes,
        memory_used_bytes=told.memory_used_bytes,
        is_mig_enabled=told.is_mig,
        is_vgpu=told.is_vgpu,
        ecc_errors_uncorrected=told.ecc_errors,
        throttle=told.throttle,
        processes=tuple(
            Process(pid=pid, name=name, memory_bytes=used) for pid, name, used in told.processes
        ),
    )
