"""Cards from the answers of the child that asked NVML."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.core.doctor.machine_facts import DriverFacts, MachineFacts, Process
from tfdyno.core.messages.nvidia import CardTold, NvmlTold
from tfdyno.probe.base.children import Answers
from tfdyno.probe.base.host import Host
from tfdyno.probe.cards.nvml import card, names, nvml

if TYPE_CHECKING:
    from tfdyno.core.messages.nvidia import Told

HEAD = NvmlTold(error="", driver="550.54.14", cuda=12040, count=2)
CARD = CardTold(name="0", card="NVIDIA L4", capability="8.9", memory_bytes=24 << 30,
                processes=((7, "python", 1 << 30),))  # fmt: skip
NONE = Answers(reason="not asked")


def told(*answers: Told, reason: str = "") -> Answers:
    return Answers(started=True, reason=reason, told=answers)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (MachineFacts(system="linux"), ["libnvidia-ml.so.1"]),
        (MachineFacts(system="linux", is_wsl=True),
         ["libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"]),
    ],
)  # fmt: skip
def test_the_library_is_looked_for_where_the_system_keeps_it(
    facts: MachineFacts, expected: list[str]
) -> None:
    assert names(facts) == expected
    assert names(MachineFacts(system="windows"))[0] == "nvml.dll"


def test_a_card_keeps_what_was_told_and_leaves_the_rest_unknown() -> None:
    found = card(CARD)
    assert (found.name, found.compute_capability, found.memory_bytes) == (
        "NVIDIA L4", "8.9", 24 << 30,
    )  # fmt: skip
    assert found.processes == (Process(pid=7, name="python", memory_bytes=1 << 30),)
    assert card(CardTold(name="0")).memory_bytes == 0


def test_what_the_kernel_told_of_the_driver_stays() -> None:
    facts = MachineFacts(driver=DriverFacts(version="550.00"))
    part = nvml(Host(), facts, told(HEAD, CARD), NONE)
    assert part.state == "ok"
    assert (part.fields["driver"].version, part.fields["driver"].cuda) == ("550.00", "12.4")


def test_a_child_that_died_keeps_the_cards_before() -> None:
    part = nvml(Host(), MachineFacts(), told(HEAD, CARD, reason="NVML died"), NONE)
    assert (part.state, part.reason) == ("failed", "NVML died")
    assert len(part.fields["gpus"]) == 1


def test_silence_is_a_failure_and_not_an_empty_machine() -> None:
    part = nvml(Host(), MachineFacts(), told(), told())
    assert (part.state, part.reason, part.fields) == ("failed", "NVML: it told nothing", {})


def test_cards_are_unknown_where_devices_were_not_looked_for() -> None:
    part = nvml(Host(), MachineFacts(), Answers(reason="a recorded machine"), NONE)
    assert (part.state, part.fields) == ("not_run", {})
