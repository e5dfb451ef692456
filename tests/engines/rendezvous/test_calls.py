"""Ports that answer, that are closed, or that belong to somebody else; and what a line carries."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import ToolError
from tfdyno.core.cluster.cluster import ProcessRank
from tfdyno.engines.rendezvous import calls
from tfdyno.engines.rendezvous.calls import Ear, reach, stream_bytes_per_s
from tfdyno.engines.rendezvous.tf_config import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def ear(rank: int = 1, token: str = "t") -> Iterator[tuple[ProcessRank, Ear]]:
    where = tuple(f"127.0.0.1:{port}" for port in free_ports(2))
    process = ProcessRank(rank=rank, addresses=where, told_by="a test")
    with contextlib.closing(Ear(process, token)) as found:
        yield process, found


def test_both_ports_of_a_node_are_reached() -> None:
    with ear() as (process, there):
        for address in (process.own, f"127.0.0.1:{there.port}"):
            found = reach(address, "t", 1)
            assert found.error == ""
            assert found.connect_s is not None


def test_a_closed_port_is_told_with_the_system_s_reason() -> None:
    with ear() as (process, there):
        pass
    assert there
    assert reach(process.own, "t", 1).error == "Connection refused"
    assert reach("no-such-host.invalid:80", "t", 1).connect_s is None


def test_another_worker_and_a_stranger_are_not_taken_for_it() -> None:
    with ear(rank=0) as (process, _):
        assert reach(process.own, "t", 1).error == "worker 0 answers there"
        assert reach(process.own, "other", 0).connect_s is None
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            line, _ = server.accept()
            with line:
                line.sendall(b'{"hello": "stranger"}\n')

        thread = threading.Thread(target=answer)
        thread.start()
        assert reach(f"127.0.0.1:{port}", "t", 1).error == "something else answers there"
        thread.join()


def test_a_port_that_is_taken_is_refused() -> None:
    with ear() as (process, _), pytest.raises(ToolError, match="is taken"):
        Ear(process, "t")


def test_a_line_carries_what_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST_STREAM_BYTES", 8 << 20)
    with ear() as (process, _):
        assert stream_bytes_per_s(process.own, "t") > 1e6
    with pytest.raises(ToolError, match="nothing can be sent"):
        stream_bytes_per_s(process.own, "t")
