"""What rules about a machine share: how evidence is written, and whether there is a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.doctor.finding import Evidence, Verdict
from tfdyno.rules.match import Match

if TYPE_CHECKING:
    from tfdyno.core.doctor.machine_facts import MachineFacts

WSL_FOLDER = "/usr/lib/wsl/"
"""Where the libraries of the Windows driver are mounted."""
CHOSEN = "CUDA_VISIBLE_DEVICES"
_HIDES_ALL = {"", "-1", "none", "nodevfiles"}
ENGINES = frozenset({"docker", "podman", "kubernetes"})


def seen(cause: str, verdict: Verdict, *evidence: tuple[str, str], **values: str) -> Match:
    """Return a match from facts; ``evidence`` are pairs of a source and what stands there."""
    return Match(
        cause=cause,
        verdict=verdict,
        evidence=tuple(Evidence(source=source, text=text) for source, text in evidence),
        basis="facts",
        values={name: value for name, value in values.items() if value},
    )


def has_gpu(facts: MachineFacts) -> bool:
    """Return whether an NVIDIA card is known to be there."""
    is_listed = bool(facts.pci_gpus or facts.gpus or facts.is_jetson)
    return is_listed or has_node(facts) or _has_windows_driver(facts)


def has_node(facts: MachineFacts) -> bool:
    """Return whether the driver made a device that a process can open."""
    return any(node.startswith("/dev/nvidia") for node in facts.device_nodes or ())


def hides_cards(facts: MachineFacts) -> bool:
    """Return whether CUDA_VISIBLE_DEVICES starts with something that is no card of this machine."""
    value = facts.environment.get(CHOSEN)
    if value is None:
        return False
    first = value.split(",")[0].strip()
    if first.lower() in _HIDES_ALL:
        return True
    if first.isdecimal():
        return facts.gpus is not None and int(first[:18]) >= max(len(facts.gpus), 1)
    uuids = [card.uuid for card in facts.gpus or () if card.uuid]
    return first.startswith("GPU-") and bool(uuids) and not any(u.startswith(first) for u in uuids)


def gpu_evidence(facts: MachineFacts) -> tuple[str, str]:
    """Return what shows that there is a card."""
    if facts.gpus:
        return "GPU", ", ".join(one.name or "NVIDIA GPU" for one in facts.gpus)
    if facts.pci_gpus:
        return "PCI bus", ", ".join(facts.pci_gpus)
    if _has_windows_driver(facts):
        return "driver of Windows", facts.driver.library_path
    return "/dev", ", ".join(facts.device_nodes or ("NVIDIA GPU",))


def cuda_works(facts: MachineFacts) -> bool:
    """Return whether ``cuInit`` was tried and worked."""
    return bool(facts.driver.cuda and not facts.driver.init_error and facts.gpus)


def _has_windows_driver(facts: MachineFacts) -> bool:
    """Return whether NVIDIA's driver tells of a card: Windows shows no bus that can be read."""
    path = facts.driver.library_path
    return bool(path) and (facts.system == "windows" or path.startswith(WSL_FOLDER))
