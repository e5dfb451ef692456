from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.process_limits import allowed
from tfdyno.probe.base import processors
from tfdyno.probe.base.host import Host, this_host

if TYPE_CHECKING:
    from tests.probe.conftest import Build

V2 = {"/proc/self/cgroup": "0::/user.slice/job\n"}


@pytest.fixture
def sixteen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "allowed", lambda: tuple(range(16)))


@pytest.mark.usefixtures("sixteen")
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 16.0),
        ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "max 100000\n"}, 16.0),
        ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({**V2, "/sys/fs/cgroup/user.slice/cpu.max": "400000 100000"}, 4.0),
        ({**V2, "/sys/fs/cgroup/user.slice/cpu.max": "400000 100000",
          "/sys/fs/cgroup/user.slice/job/cpu.max": "200000 100000"}, 2.0),
        ({"/proc/self/cgroup": "3:cpu,cpuacct:/docker/1f\n",
          "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "250000",
          "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, 2.5),
        ({"/proc/self/cgroup": "1:cpu:/\n", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
          "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, 16.0),
        ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "6400000 100000"}, 16.0),
    ],
)  # fmt: skip
def test_the_strictest_quota_counts(build: Build, files: dict[str, str], expected: float) -> None:
    assert processors.usable(build(files)) == expected


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ("processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7B13  64-Core\n",
         "AMD EPYC 7B13 64-Core"),
        ("processor\t: 0\nModel\t\t: NVIDIA Jetson AGX Orin\n", "NVIDIA Jetson AGX Orin"),
        ("CPU implementer\t: 0x41\n", "aarch64"),
        ("", "aarch64"),
    ],
)  # fmt: skip
def test_a_processor_has_the_name_it_gives_itself(
    build: Build, cpuinfo: str, expected: str
) -> None:
    host = build({"/proc/cpuinfo": cpuinfo}, architecture="aarch64")
    assert processors.name(host) == expected


def test_windows_tells_it_in_the_environment() -> None:
    variables = {"PROCESSOR_IDENTIFIER": "Intel64 Family 6"}
    assert processors.name(Host(root=this_host().root / "no", environment=variables)) == (
        "Intel64 Family 6"
    )


def test_this_machine_has_processors_and_counts_their_work() -> None:
    every = allowed()
    assert 1 <= len(every) <= (os.cpu_count() or 1)
    assert 0 < processors.usable(this_host()) <= len(every)
    whole, one = processors.busy_s(every), processors.busy_s(every[:1])
    assert whole is not None
    assert one is not None
    assert 0 < one <= whole
