"""The version of the driver against what the CUDA in use needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.jobs.machine.knowledge import capability_of, knowledge_of
from tfdyno.rules.causes import all_causes
from tfdyno.rules.explain import diagnose
from tfdyno.rules.log.explained import scan
from tfdyno.rules.told import machine_from_told, told_by_log

if TYPE_CHECKING:
    from tfdyno.core.doctor.finding import Finding

INSUFFICIENT = (
    "cudaGetDevice() failed. Status: CUDA driver version is insufficient for CUDA runtime version"
)
SUSPECTED = (
    "Could not create cudnn handle: CUDNN_STATUS_NOT_INITIALIZED\n"
    "Possibly insufficient driver version: {}"
)


def findings(log: str, **told: Any) -> tuple[Finding, ...]:
    """What the doctor says of a log and of what is told of its machine."""
    seen = scan([log], all_causes())
    facts = told_by_log(seen, machine_from_told(told, capability_of), capability_of)
    return diagnose(log=seen, facts=facts, knowledge=knowledge_of(facts)).findings


def test_the_driver_that_the_release_needs_is_named() -> None:
    said = findings(INSUFFICIENT, tf="2.18.0", driver="470.82.01", os="Ubuntu 22.04")[0]
    assert said.cause == "drv.too_old"
    assert "470.82.01" in said.summary
    assert "525.60.13" in said.summary


def test_the_opened_library_tells_the_cuda_that_is_in_use() -> None:
    log = f"Successfully opened dynamic library libcudart.so.12\n{INSUFFICIENT}"
    said = findings(log, tf="1.15.5", driver="470.82.01", os="Ubuntu 20.04")[0]
    assert "CUDA 12 needs 525.60.13" in said.summary


def test_no_need_is_named_that_the_driver_of_the_log_meets() -> None:
    said = findings(INSUFFICIENT, tf="2.11", driver="535.54.03", os="Ubuntu 22.04")[0]
    assert said.cause == "drv.too_old"
    assert "450.80.02" not in said.summary


def test_a_container_that_asks_for_a_cuda_names_it() -> None:
    line = "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please"
    said = findings(line)[0]
    assert said.cause == "drv.too_old"
    assert "12.8" in said.summary


def test_a_suspicion_that_the_versions_do_not_bear_out_is_dropped() -> None:
    assert [one.cause for one in findings(SUSPECTED.format("515.86.1"), tf="2.10")] == [
        "mem.cudnn_init"
    ]
    assert findings(SUSPECTED.format("384.130.0"), tf="2.4")[0].cause == "drv.too_old"


def test_a_driver_that_is_new_enough_is_not_blamed() -> None:
    log = "failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error"
    told = {"tf": "2.15", "os": "Ubuntu"}
    assert findings(log, driver="470.82", **told)[0].cause == "drv.too_old"
    assert [one.cause for one in findings(log, driver="535.54", **told)] == ["drv.init_failed"]
