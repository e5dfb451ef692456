"""The front and a model process that is not there, breaks off, or answers nonsense."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest
from tests.runtime.fronts import FrontProcess, at, front, models

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = {"instances": [[1, 2, 3]]}
OUTPUT = b'{"outputs":[{"name":"y","datatype":"FP32","shape":[1,2],"data":[4,7]}]}'


@pytest.fixture(scope="module")
def served() -> Iterator[FrontProcess]:
    with front(deadline_ms=1000) as process:
        yield process


@contextlib.contextmanager
def answering(answer: bytes | None) -> Iterator[int]:
    """A port where each connection gets this answer and its end; None: no answer, no end."""
    listening = socket.create_server(("127.0.0.1", 0))
    kept: list[socket.socket] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                kept.append(client)
                client.recv(65536)
                if answer is not None:
                    client.sendall(answer)
                    client.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()
        for client in kept:
            client.close()


def http_answer(body: bytes, code: int = 200) -> bytes:
    return b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n" % (code, len(body)) + body


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (b"", 503, "ended the connection"),
        (http_answer(OUTPUT)[:-9], 503, "ended the connection"),
        (b"nonsense", 503, "answered no HTTP"),
        (http_answer(b"{}"), 500, "could not be read"),
        (http_answer(b'{"error":"worker died"}', 500), 500, "worker died"),
        (http_answer(b'{"error":"wrong"}', 400), 400, "wrong"),
        (http_answer(OUTPUT), 200, ""),
        (None, 504, "did not answer in time"),
    ],
)
def test_whatever_the_model_process_does_the_client_gets_an_answer(
    served: FrontProcess, answer: bytes | None, code: int, words: str
) -> None:
    with answering(answer) as port:
        served.serve(models(port))
        got, told = served.predict(ROWS)
        assert got == code
        assert words in told.get("error", "")
    if answer is not None:
        served.serve({})
        assert served.event() == {"event": "idle", "address": at(port)}


def test_a_client_that_leaves_gives_its_place_in_the_queue_back() -> None:
    body = json.dumps(ROWS).encode()
    head = f"POST /v1/models/m:predict HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    def waiting(rows: int) -> None:
        until_s = time.monotonic() + 60
        while True:
            page = process.ask("GET", "/metrics")[1].decode()
            if f'tfdyno_queue_rows{{model="m",version="3"}} {rows}\n' in page:
                return
            assert time.monotonic() < until_s, page
            time.sleep(0.02)

    with front(max_delay_ms=0) as process, answering(None) as port:
        process.serve(models(port))
        clients = []
        for _ in range(5):
            clients.append(socket.create_connection(("127.0.0.1", process.port)))
            clients[-1].sendall(head + body)
        waiting(3)  # two calls are under way
        for client in clients[2:]:
            client.close()
        waiting(0)
        for client in clients[:2]:
            client.close()


def test_a_model_process_that_is_gone_is_503_with_a_time_to_come_back(
    served: FrontProcess,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    served.serve(models(port))
    code, told, headers = served.ask("POST", "/v1/models/m:predict", ROWS)
    assert (code, headers["retry-after"]) == (503, "1")
    assert "not there" in told["error"]
