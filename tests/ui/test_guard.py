from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from tests.ui.running import Running, running
from tests.ui.what_ifs import MODEL

from tfdyno.ui.guard import HEADERS

if TYPE_CHECKING:
    from collections.abc import Iterator

STEP = "/api/step?" + urlencode({"workload": MODEL, "gpu": "l4", "batch_size": 8})


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        assert found.json(STEP)[0] == 200
        yield found


@pytest.mark.parametrize(
    "given",
    ["", "Bearer", "Bearer ", "Bearer wrong", "Basic {token}", "{token}", "Bearer {token}x",
     "Bearer x{token}", "Bearer {token} {token}"],
)  # fmt: skip
def test_without_the_token_nothing_is_answered(server: Running, given: str) -> None:
    for path in (STEP, "/api/state", "/api/run", "/api/nothing"):
        status, _, body = server.get(path, authorization=given.format(token=server.token))
        assert status == 401
        assert json.loads(body)["error"].startswith("the token is missing or wrong")


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "127.0.0.1:1",
     "localhost", "0.0.0.0:{port}", "127.0.0.1:{port}@evil.example"],
)  # fmt: skip
def test_a_name_that_was_pointed_here_gets_no_answer(server: Running, host: str) -> None:
    for path in ("/", STEP):
        status, _, body = server.get(path, host=host.format(port=server.port))
        assert (status, set(json.loads(body))) == (421, {"error"})


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}"])
def test_its_own_names_are_answered(server: Running, host: str) -> None:
    assert server.get(STEP, host=host.format(port=server.port))[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "https://127.0.0.1:{port}"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
def test_another_site_gets_no_answer_though_it_had_the_token(
    server: Running, headers: dict[str, str]
) -> None:
    sent = {name: value.format(port=server.port) for name, value in headers.items()}
    for path in ("/", STEP):
        status, found, _ = server.get(path, **sent)
        assert status == 403
        assert not [name for name in found if name.startswith("access-control")]


def test_the_page_itself_is_answered(server: Running) -> None:
    origin = f"http://127.0.0.1:{server.port}"
    assert server.get(STEP, origin=origin, sec_fetch_site="same-origin")[0] == 200
    assert server.get("/", sec_fetch_site="none", authorization="")[0] == 200


def test_every_answer_carries_the_policy(server: Running) -> None:
    for path in ("/", "/ui.css", "/ui.js", STEP, "/api/state", "/nothing", "/api/step?gpu=t44"):
        _, found, _ = server.get(path)
        assert {name: found[name] for name in HEADERS} == HEADERS
        assert "server" not in found


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"])
def test_other_methods_are_refused(server: Running, method: str) -> None:
    answer = server.raw(
        f"{method} {STEP} HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n"
        f"authorization: Bearer {server.token}\r\nconnection: close\r\n\r\n".encode()
    )
    assert answer.startswith(b"HTTP/1.1 405")
    assert b'{"error":' in answer


@pytest.mark.parametrize("framing", ["content-length: 1000000000", "transfer-encoding: chunked"])
def test_a_body_is_not_read(server: Running, framing: str) -> None:
    answer = server.raw(
        f"GET {STEP} HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n"
        f"authorization: Bearer {server.token}\r\n{framing}\r\n\r\n".encode()
    )
    assert answer.startswith(b"HTTP/1.1 413")


def test_a_long_question_is_refused(server: Running) -> None:
    status, _, body = server.get(STEP + "&precision=" + "x" * 5000)
    assert (status, set(json.loads(body))) == (414, {"error"})


def test_a_websocket_is_not_opened(server: Running) -> None:
    answer = server.raw(
        f"GET /api/state HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\nupgrade: websocket\r\n"
        "connection: upgrade\r\nsec-websocket-version: 13\r\n"
        "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    assert b"101 Switching" not in answer
    assert b"workloads" not in answer


def test_a_link_from_another_site_opens_the_page_and_asks_nothing(server: Running) -> None:
    followed = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    for path in ("/", "/results"):
        assert server.get(path, authorization="", **followed)[0] == 200
    assert server.get(STEP, **followed)[0] == 403
