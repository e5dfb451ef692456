"""What ``doctor --json`` prints."""

from __future__ import annotations

import json

from tests.rules.environment.machines import HEALTHY
from tests.view.doctor.test_text import BOTH, DRIVER, NUMA

from tfdyno.core.base.codec import from_builtins, to_json
from tfdyno.core.doctor.finding import Diagnosis
from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.view.doctor.document import doctor_document


def test_findings_come_root_first_and_harmless_ones_at_the_end() -> None:
    found = doctor_document(BOTH, HEALTHY)["findings"]
    assert [(one["cause"], one["harmless"]) for one in found] == [
        (DRIVER.cause, False), (NUMA.cause, True),
    ]  # fmt: skip


def test_evidence_and_fix_are_sentences_and_steps_hold_the_parts() -> None:
    first = doctor_document(BOTH, None)["findings"][0]
    assert first["evidence"] == ["/proc/driver/nvidia/version: 450.80"]
    assert first["fix"] == [
        "Install a newer driver: sudo apt install nvidia-driver-570", "sudo reboot",
    ]  # fmt: skip
    assert first["steps"][1] == {"text": "", "command": "sudo reboot"}
    assert (first["verdict"], first["severity"], first["count"]) == ("proven", "error", 1)


def test_the_machine_comes_back_as_it_was() -> None:
    document = json.loads(to_json(doctor_document(BOTH, HEALTHY)))
    assert from_builtins(document["machine"], MachineFacts) == HEALTHY
    assert document["notes"] == list(BOTH.notes)
    assert doctor_document(Diagnosis(findings=()), None) == {
        "findings": [], "memory": [], "fine": [], "notes": [], "unexplained": [],
        "machine": None,
    }  # fmt: skip


def test_aged_tables_stand_among_the_notes() -> None:
    aged = Diagnosis(findings=(), notes=("first",), aged="The tables are old.")
    assert doctor_document(aged, None)["notes"] == ["first", "The tables are old."]
    assert doctor_document(Diagnosis(findings=()), None)["notes"] == []
