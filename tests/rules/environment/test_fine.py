"""What is in order is said in a few words, and nothing that a finding blames."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.environment.machines import HEALTHY

from tfdyno.core.doctor.finding import Diagnosis, Evidence, Finding, FixStep
from tfdyno.core.doctor.machine_facts import ChildFacts, MachineFacts
from tfdyno.jobs.machine.knowledge import knowledge_of
from tfdyno.rules.environment.fine import fine


def words(facts: MachineFacts, *blamed: str) -> str:
    findings = tuple(
        Finding(cause=one, verdict="proven", severity="error", summary="", why="",
                evidence=(Evidence(text="x", source="y"),), fix=(FixStep(text="z"),))
        for one in blamed
    )  # fmt: skip
    return " · ".join(fine(facts, knowledge_of(facts), Diagnosis(findings=findings)))


def test_a_healthy_machine_is_told_in_versions_and_cards() -> None:
    assert words(HEALTHY) == (
        "Python 3.11.9 · TensorFlow 2.20.0 (CUDA 12.5.1) · NumPy 2.1.3 · "
        "driver 570.124.06 (CUDA 12.8) · NVIDIA A100-SXM4-80GB, 8.0, kernels in this wheel · "
        "2 CUDA libraries load"
    )


@pytest.mark.parametrize(
    ("blamed", "left_out"),
    [
        ("pkg.numpy_abi", "NumPy"),
        ("drv.too_old", "driver"),
        ("wsl.driver", "driver"),
        ("lib.cudnn_missing", "libraries load"),
    ],
)
def test_what_a_finding_blames_is_not_fine(blamed: str, left_out: str) -> None:
    assert left_out in words(HEALTHY)
    assert left_out not in words(HEALTHY, blamed)


def test_steps_that_ran_have_their_times_and_failed_ones_none() -> None:
    ran = ChildFacts(import_s=4.25, checks=(("matrix product", 0.074, 0.00045),))
    assert words(replace(HEALTHY, child=ran)).endswith(
        "import 4.2 s · matrix product 74 ms, then 450 µs"
    )
    failed = replace(ran, failed="convolution")
    assert "matrix" not in words(replace(HEALTHY, child=failed))


def test_nothing_known_is_nothing_said() -> None:
    assert words(MachineFacts()) == ""
