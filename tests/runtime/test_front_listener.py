"""New clients while many others keep the server busy, without a model."""

from __future__ import annotations

import socket
import threading
import time

from tests.runtime.fronts import front

CLIENTS = 300
GET = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


def test_clients_that_come_all_at_once_are_all_heard_soon() -> None:
    with front() as process:
        begin_s = time.monotonic()
        clients = [socket.create_connection(("127.0.0.1", process.port)) for _ in range(CLIENTS)]
        for client in clients:
            client.sendall(GET)
        for client in clients:
            client.settimeout(10)
            assert client.recv(4096).startswith(b"HTTP/1.1 200")
        assert time.monotonic() - begin_s < 5
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
