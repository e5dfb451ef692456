"""Whole machines as they were recorded, from their files to the root cause."""

from __future__ import annotations

import pytest
from tests.probe.conftest import MACHINES, Recorded, build, recorded
from tests.rules.environment.machines import causes

from tfdyno.probe.machine.machine import examine

__all__ = ["build", "recorded"]  # the fixtures of the probes

ROOTS = {
    "conda": ["pkg.mixed_install", "lib.not_on_loader_path"],
    "docker_with_gpus": ["lib.cuda_missing", "drv.forward_compat"],
    "docker_without_gpus": ["ctr.no_gpu_flag", "lib.cuda_missing"],
    "hpc_modules": ["lib.cuda_wrong_version"],
    "jetson": ["arm.no_gpu_wheel"],
    "linux_no_driver": ["drv.not_installed", "lib.cuda_missing", "pkg.dependency_clash"],
    "linux_pip": ["lib.cudnn_version_mismatch", "lib.cuda_missing", "pkg.numpy_abi"],
    "macos": [],
    "windows": ["lib.cuda_missing"],
    "windows_intel": ["win.native_no_gpu"],
    "wsl2": ["lib.cuda_missing"],
    "wsl2_ld_path_first": ["wsl.driver"],
}


def test_every_recorded_machine_has_an_expected_answer() -> None:
    assert set(ROOTS) == {path.stem for path in MACHINES.glob("*.json")}


@pytest.mark.parametrize("name", ROOTS)
def test_the_root_cause_of_a_recorded_machine_comes_first(recorded: Recorded, name: str) -> None:
    assert causes(examine(recorded(name))) == ROOTS[name]
