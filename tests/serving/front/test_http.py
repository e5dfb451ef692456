"""The front's HTTP over raw sockets: it runs in the serving environment, without a model."""

from __future__ import annotations

import contextlib
import http.client
import re
import select
import socket
import ssl
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from tests.runtime.fronts import FrontProcess, front

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BODY_BYTES = 20_000
READ_S = 0.6
GET = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST /v1/models/m:predict HTTP/1.1\r\nHost: a\r\n"


@pytest.fixture(scope="module")
def served() -> Iterator[FrontProcess]:
    with front(max_body_bytes=BODY_BYTES, read_timeout_s=60.0) as process:
        yield process  # a busy machine does not reach 60 s


@pytest.fixture(scope="module")
def hasty() -> Iterator[FrontProcess]:
    with front(max_body_bytes=BODY_BYTES, read_timeout_s=READ_S) as process:
        yield process


def raw(served: FrontProcess, *pieces: bytes, shut: bool = False) -> bytes:
    """All that comes back until the server closes."""
    received = b""
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as client:
        for piece in pieces:
            client.sendall(piece)
            time.sleep(0.01)
        if shut:
            client.shutdown(socket.SHUT_WR)
        while data := client.recv(65536):
            received += data
    return received


def codes(received: bytes) -> list[int]:
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)]


def test_a_connection_is_kept_and_pipelined_requests_are_answered_in_order(
    served: FrontProcess,
) -> None:
    received = raw(served, GET * 3 + b"GET /x HTTP/1.1\r\n\r\n" + GET, shut=True)
    assert codes(received) == [200, 200, 200, 404, 200]


def test_a_request_in_pieces_is_one_request(served: FrontProcess) -> None:
    pieces = [GET[at : at + 1] for at in range(len(GET))]
    assert codes(raw(served, *pieces, shut=True)) == [200]


def test_connection_close_and_http_1_0_are_followed(served: FrontProcess) -> None:
    assert b"Connection: close" in raw(served, GET[:-2] + b"Connection: close\r\n\r\n")
    assert codes(raw(served, b"GET /healthz HTTP/1.0\r\n\r\n")) == [200]


def test_head_has_the_length_and_no_body(served: FrontProcess) -> None:
    received = raw(served, GET.replace(b"GET", b"HEAD"), shut=True)
    assert b"Content-Length: 13\r\n" in received
    assert received.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    "head",
    [b"Content-Length: 20001\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"],
    ids=["told", "chunked"],
)
def test_a_body_that_is_too_long_is_413(served: FrontProcess, head: bytes) -> None:
    chunk = b"4e20\r\n" + b"x" * BODY_BYTES + b"\r\n"
    assert codes(raw(served, POST + head, chunk, chunk)) == [413]


def test_a_body_that_is_expected_is_asked_for_only_when_it_is_not_too_long(
    served: FrontProcess,
) -> None:
    expects = POST + b"Expect: 100-continue\r\n"
    assert codes(raw(served, expects + b"Content-Length: 2\r\n\r\n", b"{}", shut=True)) == [
        100,
        503,
    ]
    assert codes(raw(served, expects + b"Content-Length: 99999\r\n\r\n")) == [413]


@pytest.mark.parametrize(
    "request_",
    [b"nonsense\r\n\r\n", POST + b"Content-Length: -1\r\n\r\n",
     POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", b"\x16\x03\x01\x02\x00\x01\x00",
     POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
)  # fmt: skip
def test_what_is_no_http_is_400_and_the_end_of_the_connection(
    served: FrontProcess, request_: bytes
) -> None:
    received = raw(served, request_)
    assert codes(received) == [400]
    assert b"Connection: close" in received


@pytest.mark.parametrize("pieces", [3, 1])
def test_an_endless_head_is_431_however_it_arrives(pieces: int) -> None:
    with front(read_timeout_s=60.0) as process:  # which a busy machine does not reach
        head = POST + b"X: " + b"a" * (90_000 // pieces)
        assert codes(raw(process, head, *[b"a" * 30_000] * (pieces - 1))) == [431]
        many = POST + b"Content-Length: 2\r\n\r\n{}"
        answers = codes(raw(process, many * 1500 + POST, shut=True))  # 110 kB, each head short
        assert answers
        assert 431 not in answers


@pytest.mark.parametrize(
    "slow", [POST, POST + b"Content-Length: 100\r\n\r\n{"], ids=["head", "body"]
)
def test_a_client_that_sends_too_slowly_is_408(hasty: FrontProcess, slow: bytes) -> None:
    begin_s = time.monotonic()
    assert codes(raw(hasty, slow)) == [408]
    assert time.monotonic() - begin_s >= READ_S


def test_dripping_bytes_do_not_buy_time(hasty: FrontProcess) -> None:
    with socket.create_connection(("127.0.0.1", hasty.port), timeout=60) as client:
        client.sendall(POST)
        client.settimeout(0.05)
        received, end_s = b"", time.monotonic() + 60
        while not received:
            assert time.monotonic() < end_s
            with contextlib.suppress(TimeoutError):
                client.sendall(b"X: a\r\n")
                received = client.recv(4096)
        assert codes(received) == [408]


def test_a_client_that_says_nothing_is_let_go(hasty: FrontProcess) -> None:
    assert raw(hasty) == b""


def test_bodies_that_are_too_long_together_cost_the_longest_one(served: FrontProcess) -> None:
    head = POST + b"Content-Length: 20000\r\n\r\n"
    clients = [socket.create_connection(("127.0.0.1", served.port), timeout=60) for _ in range(9)]
    try:
        for number, client in enumerate(clients):
            client.sendall(head + b"x" * (17_800 if number else 19_000))
        assert b"Too much is being sent" in clients[0].recv(4096)
        assert served.predict({"instances": [[1]]})[1] == {"error": "No model is ready"}
        assert not select.select(clients[1:], [], [], 0.05)[0]
    finally:
        for client in clients:
            client.close()


def test_without_the_token_no_body_is_read() -> None:
    with front(token="secret", read_timeout_s=30.0) as process:
        lengths = (b"Content-Length: 9\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n")
        for line in (
            POST,
            POST.replace(b"m:predict", b"x"),
            GET[:-2],
            POST + b"Expect: 100-continue\r\n",
        ):
            for length in lengths:
                assert codes(raw(process, line + length)) == [401]  # 408 if it waited for the body
        told = POST + b"Authorization: Bearer secret\r\nContent-Length: 2\r\n\r\n{}"
        assert codes(raw(process, told, shut=True)) == [503]
        page = process.ask("GET", "/metrics", authorization="Bearer secret")[1].decode()
        assert 'tfdyno_requests_total{route="none",code="401"} 8\n' in page


def test_slow_clients_do_not_hold_up_others() -> None:
    with front(read_timeout_s=600.0) as process:
        slow = [socket.create_connection(("127.0.0.1", process.port)) for _ in range(100)]
        for client in slow:
            client.sendall(POST)
        assert process.ask("GET", "/healthz")[0] == 200
        assert not select.select(slow, [], [], 0)[0]  # none of them was let go for it
        for client in slow:
            client.close()


def test_an_upgrade_is_answered_without_it(served: FrontProcess) -> None:
    upgrade = GET[:-2] + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n"
    assert codes(raw(served, upgrade)) == [200]


def test_tls_is_spoken_with_the_given_certificate(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    trusted = ssl.create_default_context(cafile=str(certificate))
    with front(tls_cert=str(certificate), tls_key=str(key), read_timeout_s=READ_S) as process:
        client = http.client.HTTPSConnection("localhost", process.port, context=trusted, timeout=60)
        for _ in range(2):
            client.request("GET", "/healthz")
            answer = client.getresponse()
            assert (answer.status, answer.read()) == (200, b'{"live":true}')
        client.close()
        assert raw(process, GET) == b""
