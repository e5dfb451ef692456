"""Cards as NVML or the driver tells them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.doctor.machine_facts import GpuFacts, MachineFacts, Process
from tfdyno.probe.base.attempt import Part, failed, found, not_run
from tfdyno.probe.base.driver import readable_cuda
from tfdyno.probe.base.pci import no_device

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.probe.base.children import Answers
    from tfdyno.probe.base.host import Host

WINDOWS_LIBRARIES = ("nvml.dll", r"C:\Program Files\NVIDIA Corporation\NVSMI\nvml.dll")


def names(facts: MachineFacts) -> list[str]:
    """What the loader is asked for, in turn."""
    if facts.system == "windows":
        return list(WINDOWS_LIBRARIES)
    return ["libnvidia-ml.so.1", *(["/usr/lib/wsl/lib/libnvidia-ml.so.1"] if facts.is_wsl else [])]


def nvml(_host: Host, facts: MachineFacts, answers: Answers, by_cuda: Answers) -> Part:
    """The cards, their memory and who holds it.

    Args:
        facts: Found so far.
        answers: Of the child that asked NVML.
        by_cuda: Of the child that asked the driver: it names the cards where there is no NVML.
    """
    if not answers.started:
        nothing = {"gpus": ()} if facts.pci_gpus == facts.device_nodes == () else {}
        return not_run(answers.reason or no_device(facts), **nothing)
    head = answers.one("nvml")
    why = str(head.get("error", "")) if head else answers.reason or "it told nothing"
    cards = tuple(card(one) for one in answers.lines("card").values() if not one.get("error"))
    if not head or head.get("error"):
        cards = tuple(card(one) for one in by_cuda.lines("card").values())
        return failed(f"NVML: {why}", **({"gpus": cards} if cards else {}))
    driver = replace(
        facts.driver,
        version=facts.driver.version or str(head.get("driver", "")),
        cuda=facts.driver.cuda or readable_cuda(int(head.get("cuda") or 0)),
    )
    lost = [str(one["error"]) for one in answers.lines("card").values() if one.get("error")]
    why = answers.reason or (f"NVML: a card does not answer: {lost[0]}" if lost else "")
    return failed(why, gpus=cards, driver=driver) if why else found(gpus=cards, driver=driver)


def card(told: Mapping[str, Any]) -> GpuFacts:
    """One card from an answer of a child."""
    return GpuFacts(
        name=str(told.get("card", "")),
        compute_capability=str(told.get("capability", "")),
        uuid=str(told.get("uuid", "")),
        memory_bytes=int(told.get("memory_bytes") or 0),
        memory_used_bytes=int(told.get("memory_used_bytes") or 0),
        is_mig_enabled=bool(told.get("is_mig")),
        is_vgpu=bool(told.get("is_vgpu")),
        ecc_errors_uncorrected=int(told.get("ecc_errors") or 0),
        throttle=tuple(map(str, told.get("throttle") or ())),
        processes=tuple(
            Process(pid=int(pid), name=str(name), memory_bytes=int(used))
            for pid, name, used in told.get("processes") or ()
        ),
    )
