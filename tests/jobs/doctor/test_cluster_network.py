"""The check of a cluster over real networks: hosts in namespaces, one pair cut, one line slowed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.engines.namespaces import Hosts, joined, why_not

pytestmark = [pytest.mark.slow]
SRC = str(Path(__file__).parents[3] / "src")
LIMIT_S = 300.0
PORT = 23571


@pytest.fixture(autouse=True)
def _may() -> None:
    if reason := why_not():
        pytest.skip(reason)


def reported(hosts: Hosts, folder: Path, *words: str) -> dict[str, Any]:
    """What worker 0 reports of processes in all namespaces."""
    listed = ",".join(f"{hosts.address(n)}:{PORT}" for n in range(len(hosts.names)))
    processes = []
    for number in range(len(hosts.names)):
        told = {"TFDYNO_WORKERS": listed, "TFDYNO_RANK": str(number), "PYTHONPATH": SRC}
        command = [sys.executable, "-m", "tfdyno", "doctor", "--cluster", "--json", *words,
                   "--output", str(folder), "--wait", "2min"]  # fmt: skip
        processes.append(
            subprocess.Popen(
                hosts.inside(number, command), env={**os.environ, **told}, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
        )  # fmt: skip
    try:
        ends = [process.communicate(timeout=LIMIT_S) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert ends[0][0], ends[0][1]
    found: dict[str, Any] = json.loads(ends[0][0])
    return found


def test_a_pair_that_is_cut_is_named_though_both_reach_worker_0(tmp_path: Path) -> None:
    with joined(3) as hosts:
        hosts.block(1, 2)
        found = reported(hosts, tmp_path, "--quick")
    failed = {(c["caller"], c["callee"]) for c in found["facts"]["calls"] if not c["connect_s"]}
    assert failed == {(1, 2), (2, 1)}
    assert found["findings"][0]["cause"] == "cluster.port_closed"
    assert "worker 1" in found["answer"]
    assert not found["can_train"]


@pytest.mark.tf
def test_bandwidth_falls_with_the_line(tmp_path: Path) -> None:
    rates: list[float] = []
    for rate in ("", "80mbit"):
        with joined(2) as hosts:
            if rate:
                hosts.slow_down(0, rate)
            found = reported(hosts, tmp_path)
        assert found["can_train"], found["findings"]
        (measured,) = found["bandwidths"]
        rates.append(measured["bus_bytes_per_s"])
        line = min(one["bytes_per_s"] for one in found["facts"]["links"])
        if rate:
            assert line < 1.3 * 10e6  # 80 Mbit/s are 10 MB/s
            assert measured["bus_bytes_per_s"] < 1.3 * 10e6
    assert rates[1] < rates[0] / 2
