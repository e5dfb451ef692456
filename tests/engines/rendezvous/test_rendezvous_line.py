"""The port of a process, and lines over loopback."""

from __future__ import annotations

import contextlib
import socket

import pytest

from tfdyno.core.base.errors import CompilerError, ToolError, failure_of
from tfdyno.core.cluster.cluster import ProcessRank
from tfdyno.engines.rendezvous.rendezvous_line import (
    bound,
    fault_in,
    listening,
    put,
    received,
    send,
)
from tfdyno.engines.rendezvous.tf_config import free_ports


def process(host: str) -> ProcessRank:
    (port,) = free_ports(1)
    return ProcessRank(rank=0, addresses=(f"{host}:{port}",), told_by="a test")


def call(own: ProcessRank, host: str) -> socket.socket:
    return socket.create_connection((host, int(own.own.rpartition(":")[2])), 2.0)


def test_a_port_that_is_only_looked_at_takes_no_call() -> None:
    own = process("127.0.0.1")
    with contextlib.closing(bound(own)), pytest.raises(ConnectionRefusedError):
        call(own, "127.0.0.1")
    with contextlib.closing(listening(own)):
        call(own, "127.0.0.1").close()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_loopback_of_ipv6_is_loopback_as_well() -> None:
    own = process("[::1]")
    with contextlib.closing(listening(own)) as listener:
        assert listener.getsockname()[0] == "::1"
        call(own, "::1").close()


def test_two_lines_that_come_at_once_are_two() -> None:
    one, other = socket.socketpair()
    with one, other:
        put(one, {"a": 1})
        put(one, {"b": "x" * 100_000})
        assert received(other, 2.0) == {"a": 1}
        assert received(other, 2.0) == {"b": "x" * 100_000}


def test_who_has_hung_up_is_named() -> None:
    one, other = socket.socketpair()
    other.close()
    with one, pytest.raises(ToolError, match="worker 3 does not answer any more"):
        send(one, {"a": 1}, "worker 3")


def test_a_fault_that_is_told_is_the_error_again_and_a_stranger_s_is_one_as_well() -> None:
    told = CompilerError("XLA failed", why="no tile", remedy="use less of it")
    one, other = socket.socketpair()
    with one, other:
        put(one, {"fault": failure_of(told)})
        again = fault_in(received(other, 2.0))
    assert (type(again), str(again)) == (CompilerError, str(told))
    assert fault_in({"go": True}) is None
    for strange in (None, 3, "no", [1], {"what": 3, "kind": "tool"}, {"reason": "none"}):
        assert str(fault_in({"fault": strange})) == "another worker failed."
