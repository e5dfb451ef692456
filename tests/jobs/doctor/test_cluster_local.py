"""The check of a cluster tried on this machine, with and without TensorFlow's all-reduce."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import ToolError
from tfdyno.jobs.doctor.cluster import ClusterRequest
from tfdyno.jobs.doctor.cluster_local import doctor_local

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="made for Linux")


@contextlib.contextmanager
def port_before_a_taken_one() -> Iterator[int]:
    """A free port, while something listens on the next."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = int(taken.getsockname()[1]) - 1
            try:
                socket.create_server(("127.0.0.1", port)).close()
            except OSError:  # another test has it: the next two
                continue
            yield port
            return


def test_processes_of_this_machine_meet_and_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_PROCID", "3")  # of the job in which somebody tries it
    told: list[str] = []
    asked = ClusterRequest(output=str(tmp_path), nodes=3, is_quick=True, wait_s=60.0)
    report = doctor_local(asked, progress=told.append)
    assert report.exit_code == 0
    assert [node.rank for node in report.facts.nodes] == [0, 1, 2]
    assert len(report.facts.calls) == 12
    assert "comparing clocks" in told
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_ends_all_in_one_sentence(tmp_path: Path) -> None:
    with port_before_a_taken_one() as port:
        asked = ClusterRequest(output=str(tmp_path), nodes=2, port=port, is_quick=True, wait_s=60.0)
        with pytest.raises(ToolError, match=rf"port {port + 1} of worker 1 is taken"):
            doctor_local(asked)


@pytest.mark.tf
@pytest.mark.slow
def test_two_processes_measure_an_all_reduce(tmp_path: Path) -> None:
    report = doctor_local(ClusterRequest(output=str(tmp_path), nodes=2, wait_s=120.0))
    assert report.exit_code == 0, report.findings
    (found,) = report.bandwidths
    assert (found.implementation, found.replicas) == ("RING", 2)
    assert found.low_bytes_per_s <= found.bus_bytes_per_s <= found.high_bytes_per_s
    assert found.expected_bytes_per_s is not None
    # A line beside a host that costs something is slower than the line alone.
    assert found.expected_bytes_per_s < min(one.bytes_per_s for one in report.facts.links)
    sizes = report.facts.all_reduces[0].sizes
    assert [one.size_bytes for one in sizes][:2] == [4096, 1 << 20]
    assert all(len(one.times_s) >= 5 for one in sizes)
    assert all(one.is_right for one in report.facts.all_reduces)
