"""What the rules about a machine share: evidence, and whether there is a card."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.environment.machines import HEALTHY, card

from tfdyno.core.doctor.finding import Evidence
from tfdyno.core.doctor.machine_facts import DriverFacts, MachineFacts
from tfdyno.rules.environment.seen import cuda_works, gpu_evidence, has_gpu, seen

WINDOWS = DriverFacts(library_path=r"C:\Windows\System32\nvcuda.dll")
WSL = DriverFacts(library_path="/usr/lib/wsl/lib/libcuda.so.1")
LINUX = DriverFacts(library_path="/usr/lib/x86_64-linux-gnu/libcuda.so.1")


def test_a_match_keeps_its_evidence_and_drops_what_is_not_known() -> None:
    match = seen("drv.too_old", "proven", ("PCI bus", "one"), driver="450.80", cuda="")
    assert match.evidence == (Evidence(source="PCI bus", text="one"),)
    assert match.basis == "facts"
    assert match.values == {"driver": "450.80"}


@pytest.mark.parametrize(
    ("facts", "is_there", "source"),
    [
        (MachineFacts(gpus=(card("Tesla T4"),)), True, "GPU"),
        (MachineFacts(pci_gpus=("0000:01:00.0",), gpus=()), True, "PCI bus"),
        (MachineFacts(device_nodes=("/dev/nvidia0",)), True, "/dev"),
        (MachineFacts(is_jetson=True), True, "/dev"),
        (MachineFacts(system="windows", driver=WINDOWS), True, "driver of Windows"),
        (MachineFacts(system="linux", driver=WSL), True, "driver of Windows"),
        (MachineFacts(system="linux", driver=LINUX), False, ""),
        (MachineFacts(device_nodes=("/dev/dxg",)), False, ""),
        (MachineFacts(), False, ""),
    ],
)
def test_a_card_is_there_when_anything_shows_it(
    facts: MachineFacts, is_there: bool, source: str
) -> None:
    assert has_gpu(facts) is is_there
    assert not source or gpu_evidence(facts)[0] == source
    assert not source or gpu_evidence(facts)[1]


def test_cuda_works_only_where_it_was_tried() -> None:
    assert cuda_works(HEALTHY)
    assert not cuda_works(replace(HEALTHY, gpus=()))
    failed = replace(HEALTHY.driver, init_error="CUDA_ERROR_UNKNOWN")
    assert not cuda_works(replace(HEALTHY, driver=failed))
    assert not cuda_works(MachineFacts())
