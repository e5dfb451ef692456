"""Real processes that stand for nodes, each with one thing planted that is wrong."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.cluster.cluster_facts import ClusterReport
from tfdyno.engines.rendezvous.tf_config import free_ports
from tfdyno.jobs.doctor.cluster import ClusterRequest, doctor_cluster

SRC = str(Path(__file__).parents[3] / "src")
LIMIT_S = 120.0
Variables = dict[str, str]
PLANTED = """
import importlib.metadata, os, time
if os.environ.get("TFDYNO_RANK") == "1":
    ahead_s = float(os.environ.get("PLANT_CLOCK_S", "0"))
    true = time.time
    time.time = lambda: true() + ahead_s
    told, other = importlib.metadata.version, os.environ.get("PLANT_KERAS", "")
    importlib.metadata.version = lambda n: other if n == "keras" and other else told(n)
"""
"""A module that Python runs at its start: another clock, another version on worker 1."""


def variables(count: int) -> list[Variables]:
    listed = ",".join(f"127.0.0.1:{port}" for port in free_ports(count))
    return [{"TFDYNO_WORKERS": listed, "TFDYNO_RANK": str(rank)} for rank in range(count)]


def started(
    folder: Path, own: Variables, *words: str, plant: Variables | None = None
) -> subprocess.Popen[str]:
    (folder / "sitecustomize.py").write_text(PLANTED)
    environment = {**os.environ, **own, **(plant or {}), "TFDYNO_SHARED_S": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), SRC])
    command = [sys.executable, "-m", "tfdyno", "doctor", "--cluster", "--quick", "--json", *words]
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def reported(folder: Path, **plant: str) -> tuple[int, dict[str, Any]]:
    """Exit code and report of worker 0, after two processes with what is planted."""
    both = variables(2)
    folders = plant.pop("folders", "run run").split()
    processes = [
        started(folder, own, "--output", str(folder / name), plant=plant)
        for own, name in zip(both, folders, strict=True)
    ]
    (out, error), (_, other) = (process.communicate(timeout=LIMIT_S) for process in processes)
    assert processes[1].returncode == 0, other
    assert processes[0].returncode in (0, 1), error
    return processes[0].returncode, json.loads(out)


def causes(report: dict[str, Any], severity: str) -> set[str]:
    return {one["cause"] for one in report["findings"] if one["severity"] == severity}


def test_two_processes_that_fit_together_can_train(tmp_path: Path) -> None:
    code, report = reported(tmp_path)
    assert (code, report["can_train"]) == (0, True)
    assert report["answer"].startswith("2 nodes can train together")
    facts = report["facts"]
    assert [node["rank"] for node in facts["nodes"]] == [0, 1]
    assert all(call["connect_s"] > 0 for call in facts["calls"])
    assert len(facts["calls"]) == 4  # two ports each way
    assert [view["writer"] for view in facts["views"]] == [0, 1]
    assert all(rate["bytes_per_s"] > 0 for rate in facts["links"])
    assert all(one["read_bytes_per_s"] > 0 for one in facts["speeds"])
    assert not (tmp_path / "run").exists()  # it was made for the check alone


def test_other_versions_a_wrong_clock_and_a_wrong_interface_are_all_told(tmp_path: Path) -> None:
    code, report = reported(
        tmp_path, PLANT_KERAS="3.0.1", PLANT_CLOCK_S="4000", NCCL_SOCKET_IFNAME="enp99s0"
    )
    assert code == 1
    wrong = {"cluster.versions", "cluster.clock_skew", "cluster.socket_ifname"}
    assert causes(report, "error") == wrong
    (clock,) = report["facts"]["clocks"]
    assert abs(clock["offset_s"] - 4000.0) <= clock["uncertainty_s"] + 0.5
    assert report["answer"].startswith("2 nodes cannot train together: the nodes do not run the")


def test_a_folder_that_is_not_shared_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    code, report = reported(tmp_path, folders="run theirs")
    assert (code, causes(report, "error")) == (1, {"cluster.not_shared"})
    assert list((tmp_path / "theirs").iterdir()) == []  # nothing is left there


def test_a_worker_that_does_not_come_is_a_finding_beside_what_0_tells(tmp_path: Path) -> None:
    process = started(tmp_path, variables(2)[0], "--wait", "2s")
    out, error = process.communicate(timeout=LIMIT_S)
    report = json.loads(out)
    assert process.returncode == 1, error
    assert causes(report, "error") == {"cluster.missing"}
    assert "worker 1 did not come within 2 s" in report["answer"]
    assert report["facts"]["nodes"][0]["versions"]["tfdyno"]


def test_a_port_that_is_taken_is_told_on_both(tmp_path: Path) -> None:
    both = variables(2)
    port = int(both[0]["TFDYNO_WORKERS"].rpartition(":")[2])
    with socket.create_server(("127.0.0.1", port)):
        first, second = (started(tmp_path, own, "--wait", "4s") for own in both)
        out, _ = first.communicate(timeout=LIMIT_S)
        _, said = second.communicate(timeout=LIMIT_S)
    assert "port" in said
    assert f"{port} of worker 1 is taken" in said
    assert second.returncode == 3
    assert causes(json.loads(out), "error") == {"cluster.missing"}


class Threads:
    """Nodes in threads of this process, so that a port can be closed between two of them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.errors = folder, list[Exception]()
        self.report: ClusterReport | None = None

    def run(self, own: Variables) -> None:
        asked = ClusterRequest(output=str(self.folder), is_quick=True, wait_s=20.0)
        try:
            found = doctor_cluster(asked, environment=own)
            self.report = found or self.report
        except (ToolError, UsageError) as error:
            self.errors.append(error)

    def together(self, processes: list[Variables]) -> ClusterReport:
        threads = [threading.Thread(target=self.run, args=(own,)) for own in processes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        assert self.errors == []
        assert isinstance(self.report, ClusterReport)
        return self.report


def test_a_pair_that_does_not_reach_each_other_is_named_though_both_reach_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = variables(3)
    closed = processes[0]["TFDYNO_WORKERS"].split(",")[2]
    true = socket.create_connection

    def walled(address: tuple[str, int], *given: Any, **more: Any) -> socket.socket:
        if f"{address[0]}:{address[1]}" == closed and given:
            raise ConnectionRefusedError(111, "Connection refused")
        return true(address, *given, **more)

    monkeypatch.setattr(socket, "create_connection", walled)
    report = Threads(tmp_path).together(processes)
    failed = {(c.caller, c.callee) for c in report.facts.calls if c.connect_s is None}
    assert failed == {(0, 2), (1, 2)}
    assert report.findings[0].cause == "cluster.port_closed"
    assert report.facts.links == ()  # nothing is measured over ports that are closed


def test_without_an_engine_the_command_says_how_it_is_started(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing tells of other nodes; let the engine start it"):
        doctor_cluster(ClusterRequest(output=str(tmp_path)), environment={})


def test_a_worker_that_is_killed_on_the_way_is_a_finding(tmp_path: Path) -> None:
    both = variables(2)
    first = started(tmp_path, both[0], "--output", str(tmp_path / "run"))
    listed = both[0]["TFDYNO_WORKERS"].split(",")
    host, _, port = listed[0].rpartition(":")
    hello = {"tfdyno": 1, "rank": 1, "size": 2, "host": "n1", "process": 1,
             "facts": {"check of a cluster": "1"}}  # fmt: skip
    line = None
    until_s = time.monotonic() + LIMIT_S
    while line is None and time.monotonic() < until_s:
        with contextlib.suppress(OSError):
            line = socket.create_connection((host, int(port)), 1.0)
        time.sleep(0.1)
    assert line
    with line, line.makefile("rw") as words:
        for said in (hello, {"checked": True}):
            words.write(json.dumps(said) + "\n")
            words.flush()
            assert "welcome" in (answer := json.loads(words.readline())) or "go" in answer
        assert json.loads(words.readline())["do"] == "look"
    out, error = first.communicate(timeout=LIMIT_S)
    assert first.returncode == 1, error
    assert "worker 1 does not answer any more" in json.loads(out)["answer"]
