"""runtime.serve_first_calls: how long a call takes is known before a client asks."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tfdyno.serving.front.wire import FAULT
from tfdyno.serving.model.binding import describe
from tfdyno.serving.model.first_calls import SLOW_CALLS, TIMED_CALLS, first_call_s
from tfdyno.serving.model.saved import Signature, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.serving.front.wire import Arrays


def double(arrays: Arrays) -> Arrays:
    return {"y": arrays["x"] * 2}


SIGNATURE = Signature(
    name="serving_default",
    inputs=(Tensor(name="x", dtype="float32", shape=(None, 3)),),
    outputs=(Tensor(name="y", dtype="float32", shape=(None, 3)),),
    call=double,
)
DESCRIBED = describe(SIGNATURE, "double")


class Waking(BaseHTTPRequestHandler):
    """A server whose first calls are slow; it keeps what it was asked."""

    protocol_version = "HTTP/1.1"
    asked: list[tuple[str, int, bytes]] = []  # noqa: RUF012  (emptied by each test)
    code = 200
    outputs: list[dict[str, object]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        head = int(self.headers["Inference-Header-Content-Length"])
        self.asked.append((self.path, head, body))
        time.sleep(0.2 if len(self.asked) <= SLOW_CALLS else 0.01)
        told = {"outputs": self.outputs} if self.code == 200 else {"error": "no such model"}
        answer = json.dumps(told).encode()
        self.send_response(self.code)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    Waking.asked, Waking.code = [], 200
    Waking.outputs = [{"name": "y", "shape": [1, 3], "data": [0, 0, 0]}]
    server = HTTPServer(("127.0.0.1", 0), Waking)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_slow_first_calls_are_made_but_not_timed(address: str) -> None:
    found = first_call_s(address, SIGNATURE, DESCRIBED)
    assert 0.01 <= found < 0.2  # as long as a slow one
    assert len(Waking.asked) == SLOW_CALLS + TIMED_CALLS
    path, head, body = Waking.asked[0]
    assert path == "/v2/models/double/infer"
    assert json.loads(body[:head])["inputs"][0]["shape"] == [1, 3]
    assert np.frombuffer(body[head:], np.float32).tolist() == [0.0, 0.0, 0.0]


def test_a_refused_call_leaves_the_time_unknown(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Waking.code = 404
    assert first_call_s(address, SIGNATURE, DESCRIBED) == 0.0
    assert len(Waking.asked) == 1
    assert "no such model" in capsys.readouterr().err


def test_a_call_that_the_model_fails_on_leaves_the_time_unknown(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Waking.outputs += [{"name": FAULT, "shape": [1, 1], "data": ["ValueError: not 0"]}]
    assert first_call_s(address, SIGNATURE, DESCRIBED) == 0.0
    assert "ValueError: not 0" in capsys.readouterr().err


def test_nothing_is_asked_where_no_sample_can_be_made_up(address: str) -> None:
    def refuse(_arrays: Arrays) -> Arrays:
        raise ValueError("only for real data")

    strict = Signature(name="strict", inputs=SIGNATURE.inputs, outputs=(), call=refuse)
    assert first_call_s(address, strict, DESCRIBED) == 0.0
    assert Waking.asked == []
