"""New clients while many others keep the server busy, without a model."""

from __future__ import annotations

import resource
import socket
import threading
import time

import psutil
import pytest
from tests.runtime.fronts import front

from tfdyno.serving.front.listener import most_connections

CLIENTS = 300
GET = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


def test_clients_that_come_all_at_once_are_all_heard_soon() -> None:
    with front() as process:
        clients = [socket.create_connection(("127.0.0.1", process.port)) for _ in range(CLIENTS)]
        for client in clients:
            client.sendall(GET)
        for client in clients:
            client.settimeout(60)
            assert client.recv(4096).startswith(b"HTTP/1.1 200")
        for client in clients:
            client.close()


def test_a_client_that_leaves_at_once_harms_nobody() -> None:
    with front() as process:

        def leave() -> None:
            for _ in range(50):
                socket.create_connection(("127.0.0.1", process.port)).close()

        threads = [threading.Thread(target=leave) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert process.ask("GET", "/healthz")[0] == 200


def test_as_many_clients_are_heard_as_the_system_allows_files() -> None:
    with front(files="-S -n 64") as process:  # the usual soft limit is low, the hard one is not
        clients = [socket.create_connection(("127.0.0.1", process.port)) for _ in range(200)]
        for client in clients:
            client.settimeout(60)
            client.sendall(GET)
        assert {client.recv(4096)[:12] for client in clients} == {b"HTTP/1.1 200"}
        for client in clients:
            client.close()


def test_without_a_free_file_others_are_answered_and_the_processor_is_not_kept_busy() -> None:
    with front(files="-n 150") as process:
        first = socket.create_connection(("127.0.0.1", process.port))
        first.settimeout(60)
        clients = [socket.create_connection(("127.0.0.1", process.port)) for _ in range(400)]
        used = psutil.Process(process.process.pid)
        before_s, begin_s = sum(used.cpu_times()[:2]), time.monotonic()
        for _ in range(10):
            first.sendall(GET)
            assert first.recv(4096).startswith(b"HTTP/1.1 200")
            time.sleep(0.1)
        assert sum(used.cpu_times()[:2]) - before_s < 0.15 * (time.monotonic() - begin_s)
        for client in (first, *clients):
            client.close()
        until_s = time.monotonic() + 60
        while process.ask("GET", "/healthz")[0] != 200:  # until it has seen that they left
            assert time.monotonic() < until_s
            time.sleep(0.1)


@pytest.mark.parametrize(
    ("files", "clients"),
    [(150, 75), (1024, 896), (1 << 20, 4096), (resource.RLIM_INFINITY, 4096)],
)
def test_some_files_are_kept_for_what_is_no_client(files: int, clients: int) -> None:
    assert most_connections(files) == clients
