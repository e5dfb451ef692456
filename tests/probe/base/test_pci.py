from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.probe.base.host import Host
from tfdyno.probe.base.pci import no_device, pci

if TYPE_CHECKING:
    from tests.probe.conftest import Build

BUS = "/sys/bus/pci/devices"


def test_cards_count_but_not_their_sound_nor_other_makers(build: Build) -> None:
    files = {
        f"{BUS}/0000:01:00.0/vendor": "0x10de\n", f"{BUS}/0000:01:00.0/class": "0x030200\n",
        f"{BUS}/0000:01:00.1/vendor": "0x10de\n", f"{BUS}/0000:01:00.1/class": "0x040300\n",
        f"{BUS}/0000:02:00.0/vendor": "0x1002\n", f"{BUS}/0000:02:00.0/class": "0x030000\n",
        "/dev/nvidia0": "", "/dev/nvidia-uvm": "", "/dev/null": "",
    }  # fmt: skip
    part = pci(build(files), MachineFacts())
    assert part.fields["pci_gpus"] == ("0000:01:00.0",)
    assert part.fields["device_nodes"] == ("/dev/nvidia-uvm", "/dev/nvidia0")


def test_a_machine_without_a_bus_is_not_a_machine_without_cards(build: Build) -> None:
    part = pci(build({"/dev/nvmap": ""}), MachineFacts())
    assert (part.state, part.reason) == ("not_run", "this machine shows no PCI bus")
    assert part.fields == {"device_nodes": ("/dev/nvmap",)}
    assert pci(Host(system="windows"), MachineFacts()).state == "not_run"


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (MachineFacts(system="macos"), "macOS has no NVIDIA driver"),
        (MachineFacts(system="windows"), "this Windows has no NVIDIA driver"),
        (MachineFacts(system="linux", pci_gpus=(), device_nodes=()), "there is no NVIDIA device"),
        (MachineFacts(system="linux", device_nodes=("/dev/dxg",)), ""),
        (MachineFacts(system="linux", is_jetson=True), ""),
    ],
)
def test_why_nothing_can_be_asked(facts: MachineFacts, reason: str) -> None:
    assert no_device(facts) == reason
