"""Processes that meet over loopback: who is missing, there twice, or different is named."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.cluster.cluster import ProcessRank
from tfdyno.engines.rendezvous import rendezvous
from tfdyno.engines.rendezvous.rendezvous import check_port, join_rendezvous, serve_rendezvous
from tfdyno.engines.rendezvous.tf_config import free_ports

if TYPE_CHECKING:
    from collections.abc import Callable

VERSIONS = {"tensorflow": "2.21.0", "keras": "3.15.1"}
WAIT_S = 20.0


def processes(count: int) -> list[ProcessRank]:
    where = tuple(f"127.0.0.1:{port}" for port in free_ports(count))
    return [ProcessRank(rank=rank, addresses=where, told_by="a test") for rank in range(count)]


def nothing(_given: object) -> None:
    """Agree with everything, tell nobody."""


class Group:
    """Every process in a thread of its own, with what it returned or raised."""

    def __init__(self) -> None:
        self.results: dict[str, Any] = {}
        self.threads: list[threading.Thread] = []

    def start(self, name: str, action: Callable[[], Any]) -> None:
        def run() -> None:
            try:
                self.results[name] = action()
            except (UsageError, ToolError) as error:
                self.results[name] = error

        thread = threading.Thread(target=run)
        self.threads.append(thread)
        thread.start()

    def lead(self, process: ProcessRank, *, name: str = "0", wait_s: float = WAIT_S) -> None:
        message = {"recipe": {"seed": 3}}
        self.start(
            name, lambda: serve_rendezvous(process, VERSIONS, message, tell=nothing, wait_s=wait_s)
        )

    def follow(
        self,
        process: ProcessRank,
        *,
        name: str = "",
        facts: dict[str, str] = VERSIONS,
        check: Callable[[dict[str, Any]], object] = nothing,
        wait_s: float = WAIT_S,
    ) -> None:
        self.start(
            name or str(process.rank),
            lambda: join_rendezvous(process, facts, check, tell=nothing, wait_s=wait_s),
        )

    def ended(self) -> dict[str, Any]:
        for thread in self.threads:
            thread.join(WAIT_S)
            assert not thread.is_alive()
        return self.results


def test_all_hear_what_worker_0_says() -> None:
    group, places = Group(), processes(4)
    for process in places[1:]:
        group.follow(process)
    group.lead(places[0])
    said = {"recipe": {"seed": 3}}
    assert group.ended() == {"0": None, "1": said, "2": said, "3": said}


def test_a_worker_that_does_not_come_is_named() -> None:
    group, places = Group(), processes(3)
    group.lead(places[0], wait_s=1.5)
    group.follow(places[2])
    results = group.ended()
    assert "worker 1 did not come within 2 s" in str(results["0"])
    assert places[0].addresses[1] in str(results["0"])
    assert "worker 1 did not come" in str(results["2"])


def test_worker_0_that_does_not_answer_is_named() -> None:
    _, process = processes(2)
    with pytest.raises(ToolError, match=f"worker 0 does not answer at {process.addresses[0]}"):
        join_rendezvous(process, VERSIONS, nothing, tell=nothing, wait_s=0.5)


def test_a_worker_that_is_there_twice_is_named_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendezvous, "check_port", nothing)  # as on two machines
    group, places = Group(), processes(3)
    group.lead(places[0])
    group.follow(places[1], name="first")
    time.sleep(0.5)
    group.follow(places[1], name="second")
    results = group.ended()
    for name in ("0", "first", "second"):
        assert "worker 1 is there twice: it is process" in str(results[name])


def test_worker_0_that_is_there_twice_is_named() -> None:
    """The second one has a port of its own, and its address leads to the first."""
    group, places = Group(), processes(2)
    group.lead(places[0])
    time.sleep(0.3)
    hello = {"tfdyno": 1, "rank": 0, "size": 2, "host": "elsewhere", "process": 7, "nonce": "x"}
    with socket.create_connection(("127.0.0.1", int(places[0].own.rpartition(":")[2]))) as line:
        line.sendall(json.dumps(hello).encode() + b"\n")
        answer = json.loads(line.makefile().readline())
    assert "worker 0 is there twice" in answer["fault"]["what"]
    assert "process 7 on elsewhere" in str(group.ended()["0"])


def test_different_versions_are_told_with_their_workers() -> None:
    group, places = Group(), processes(3)
    group.lead(places[0])
    group.follow(places[1])
    group.follow(places[2], facts={**VERSIONS, "tensorflow": "2.20.0"})
    results = group.ended()
    for name in ("0", "1", "2"):
        assert isinstance(results[name], UsageError)
        assert "tensorflow 2.21.0 on worker 0, 2.20.0 on worker 2" in str(results[name])


def test_a_check_that_fails_on_one_ends_all() -> None:
    def refuse(message: dict[str, Any]) -> None:
        raise UsageError("the folder is another", remedy="share it")

    group, places = Group(), processes(3)
    group.lead(places[0])
    group.follow(places[1], check=refuse)
    group.follow(places[2])
    results = group.ended()
    assert str(results["0"]) == "worker 1: the folder is another; share it."
    assert str(results["1"]) == "the folder is another; share it."
    assert "worker 1: the folder is another" in str(results["2"])


def test_a_taken_port_is_named_with_its_worker() -> None:
    _, process = processes(2)
    with socket.create_server(("", int(process.own.rpartition(":")[2]))) as taken:
        with pytest.raises(ToolError, match=f"port {taken.getsockname()[1]} of worker 1 is taken"):
            check_port(process)
        with pytest.raises(ToolError, match="choose another port with --port"):
            join_rendezvous(process, VERSIONS, nothing, tell=nothing, wait_s=1.0)


@pytest.mark.parametrize("words", [b"GET / HTTP/1.0\r\n\r\n", b"{}\n", b"", b"[1]\n"])
def test_strangers_that_call_are_hung_up(words: bytes) -> None:
    group, places = Group(), processes(2)
    group.lead(places[0])
    time.sleep(0.3)
    with socket.create_connection(("127.0.0.1", int(places[0].own.rpartition(":")[2]))) as line:
        line.sendall(words)
        with contextlib.suppress(OSError):  # it may have been hung up already
            line.shutdown(socket.SHUT_WR)
        group.follow(places[1])
        assert group.ended()["1"] == {"recipe": {"seed": 3}}


def test_a_worker_that_came_back_takes_its_own_place() -> None:
    group, places = Group(), processes(3)
    group.lead(places[0])
    time.sleep(0.3)
    hello = {"tfdyno": 1, "rank": 1, "size": 3, "host": "here", "process": 7, "facts": VERSIONS}
    port = int(places[0].own.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(json.dumps(hello).encode() + b"\n")
        time.sleep(0.5)
    group.follow(places[1])
    group.follow(places[2])
    assert group.ended()["1"] == {"recipe": {"seed": 3}}


@pytest.mark.parametrize("how", ["reset", "hung up", "hung up in a line"])
def test_who_is_cut_off_before_the_welcome_calls_again(how: str) -> None:
    group, places = Group(), processes(2)
    port = int(places[0].own.rpartition(":")[2])
    with socket.create_server(("127.0.0.1", port)) as first:
        group.follow(places[1])
        line, _ = first.accept()
        assert json.loads(line.makefile().readline())["rank"] == 1
        if how == "reset":
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if how == "hung up in a line":
            line.sendall(b'{"welc')
        line.close()
    group.lead(places[0])
    assert group.ended()["1"] == {"recipe": {"seed": 3}}


def test_who_is_hung_up_calls_until_its_wait_is_over() -> None:
    group, places = Group(), processes(2)
    with socket.create_server(("127.0.0.1", int(places[0].own.rpartition(":")[2]))) as first:
        first.settimeout(WAIT_S)
        group.follow(places[1], wait_s=2.0)
        first.accept()[0].close()
        first.accept()[0].close()
    error = group.ended()["1"]
    assert isinstance(error, ToolError)
    assert "worker 0 does not answer at" in str(error)


def test_a_name_that_no_host_has_is_told() -> None:
    (port,) = free_ports(1)
    where = ("a..b:5000", f"127.0.0.1:{port}")
    with pytest.raises(UsageError, match=r"'a\.\.b' is no name of a host"):
        join_rendezvous(
            ProcessRank(rank=1, addresses=where, told_by="a test"), VERSIONS, nothing, tell=nothing
        )


def test_those_who_stay_keep_their_lines_and_the_port_is_free() -> None:
    group, places = Group(), processes(3)
    heard: dict[int, Any] = {}

    def lead_on(lines: dict[int, socket.socket]) -> None:
        check_port(places[0])  # nobody listens there any more
        for rank, line in lines.items():
            line.sendall(json.dumps({"to": rank}).encode() + b"\n")

    for process in places[1:]:

        def stay(line: socket.socket, message: dict[str, Any], rank: int = process.rank) -> None:
            heard[rank] = (message, json.loads(line.makefile().readline()))

        group.start(str(process.rank), lambda process=process, stay=stay: join_rendezvous(  # type: ignore[misc]
            process, VERSIONS, nothing, tell=nothing, wait_s=WAIT_S, stay=stay))  # fmt: skip
    group.start("0", lambda: serve_rendezvous(
        places[0], VERSIONS, {"x": 1}, tell=nothing, wait_s=WAIT_S, stay=lead_on))  # type: ignore[arg-type]  # fmt: skip
    assert group.ended()["0"] is None
    assert heard == {1: ({"x": 1}, {"to": 1}), 2: ({"x": 1}, {"to": 2})}
