from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import numpy as np
import pytest
from tests.runtime.fronts import WEIGHTS, Here, models

from tfdyno.serving.front.app import Front
from tfdyno.serving.front.backends import Backends
from tfdyno.serving.front.messages import HttpRequest
from tfdyno.serving.front.metrics import FrontMetrics
from tfdyno.serving.front.queue import Limits
from tfdyno.serving.front.table import read_table, signature_of


class Asked:
    """A front over the model in this process, asked without a connection."""

    def __init__(self, *, token: str | None = None, deadline_s: float = math.inf) -> None:
        self.model, self.idle = Here(), list[str]()
        self.metrics = FrontMetrics()
        limits = Limits(rows=4, delay_s=0.001, waiting_rows=8)
        self.backends = Backends(
            limits, self.metrics, connect=lambda _port: self.model, tell_idle=self.idle.append
        )
        self.backends.switch(read_table(models()))
        loop = asyncio.get_running_loop()
        self.front = Front(
            self.backends, self.metrics, token=token, deadline_s=deadline_s, clock=loop.time
        )

    async def ask(
        self, method: str, path: str, body: object = b"", **headers: str
    ) -> tuple[int, Any, dict[str, str]]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {key.replace("_", "-").encode(): value.encode() for key, value in headers.items()}
        begin_s = asyncio.get_running_loop().time()
        request = HttpRequest(
            method=method, target=path.encode(), headers=named, body=data, begin_s=begin_s
        )
        response = await self.front.handle(request)
        is_json = response.content_type == "application/json"
        text = json.loads(response.body) if is_json else response.body
        return response.code, text, dict(response.headers)


def ask(method: str, path: str, body: object = b"", **headers: str) -> tuple[int, Any, Any]:
    async def work() -> tuple[int, Any, Any]:
        return await Asked().ask(method, path, body, **headers)

    return asyncio.run(work())


ROWS = {"instances": [[1, 2, 3], [4, 5, 6]]}
BY_HAND = [[4, 7], [10, 16]]


@pytest.mark.parametrize("place", ["", "/versions/3", "/versions/003"])
def test_predict_answers_under_the_model_and_its_version(place: str) -> None:
    code, answer, _ = ask("POST", f"/v1/models/m{place}:predict", ROWS)
    assert (code, answer) == (200, {"predictions": BY_HAND})


def test_the_other_format_and_the_other_protocol_say_the_same() -> None:
    assert ask("POST", "/v1/models/m:predict", {"inputs": ROWS["instances"]})[1] == {
        "outputs": BY_HAND
    }
    tensor = {"name": "x", "shape": [2, 3], "datatype": "FP32", "data": [1, 2, 3, 4, 5, 6]}
    code, answer, _ = ask("POST", "/v2/models/m/infer", {"id": "7", "inputs": [tensor]})
    assert code == 200
    assert answer == {
        "model_name": "m", "model_version": "3", "id": "7",
        "outputs": [
            {"name": "y", "datatype": "FP32", "shape": [2, 2], "data": [4.0, 7.0, 10.0, 16.0]}
        ],
    }  # fmt: skip


def test_binary_tensors_go_in_and_out() -> None:
    x = np.array(ROWS["instances"], dtype="<f4")
    head = json.dumps(
        {
            "inputs": [
                {"name": "x", "shape": [2, 3], "datatype": "FP32",
                 "parameters": {"binary_data_size": x.nbytes}}
            ],
            "outputs": [{"name": "y", "parameters": {"binary_data": True}}],
        }
    ).encode()  # fmt: skip
    length = {"inference_header_content_length": str(len(head))}
    code, body, headers = ask("POST", "/v2/models/m/infer", head + x.tobytes(), **length)
    assert code == 200
    end = int(headers["Inference-Header-Content-Length"])
    assert json.loads(body[:end])["outputs"][0]["parameters"] == {"binary_data_size": 16}
    np.testing.assert_array_equal(np.frombuffer(body[end:], "<f4").reshape(2, 2), x @ WEIGHTS)


@pytest.mark.parametrize(
    ("method", "path", "code", "words"),
    [
        ("GET", "/", 404, "nothing at /"),
        ("GET", "/v1/models/../m", 404, "nothing at"),
        ("GET", "/v1/models/%2e%2e%2fm", 404, "nothing at"),
        ("GET", "/v1/models/%ff", 400, "no UTF-8"),
        ("GET", "/v1/models/m:predict", 405, "POST"),
        ("POST", "/v1/models/m", 405, "GET, HEAD"),
        ("POST", "/v1/models/n:predict", 404, "Servable not found for request: Latest(n)"),
        ("POST", "/v1/models/m/versions/9:predict", 404, "Specific(m, 9)"),
        ("POST", "/v1/models/m/labels/x:predict", 404, "Unrecognized servable version label: x"),
        ("GET", "/v1/models/n", 404, "Could not find any versions of model n"),
        ("POST", "/v1/models/m:classify", 501, "use :predict"),
    ],
)
def test_what_is_not_there_is_told_as_tensorflow_serving_does(
    method: str, path: str, code: int, words: str
) -> None:
    got, answer, headers = ask(method, path)
    assert got == code
    assert words in answer["error"]
    assert ("Allow" in headers) == (code == 405)


def test_a_signature_is_chosen_by_name_and_an_unknown_one_is_400() -> None:
    code, answer, _ = ask("POST", "/v1/models/m:predict", {**ROWS, "signature_name": "no"})
    assert code == 400
    assert 'signature name: "no" not found' in answer["error"]


def test_without_a_model_health_is_alive_but_not_ready() -> None:
    async def work() -> None:
        asked = Asked()
        assert (await asked.ask("GET", "/readyz"))[0] == 200
        asked.backends.switch(read_table({}))
        assert (await asked.ask("GET", "/readyz"))[0] == 503
        assert (await asked.ask("GET", "/v2/health/ready"))[0] == 503
        assert (await asked.ask("GET", "/healthz"))[0] == 200
        code, answer, headers = await asked.ask("POST", "/v1/models/m:predict", ROWS)
        assert (code, headers) == (503, {"Retry-After": "1"})
        assert answer == {"error": "No model is ready"}

    asyncio.run(work())


def test_all_but_health_asks_for_the_token() -> None:
    async def work() -> None:
        asked = Asked(token="secret")
        for path in ("/metrics", "/v1/models/m", "/docs", "/openapi.json", "/v2"):
            for given in ({}, {"authorization": "Bearer secre"}, {"authorization": "secret"}):
                code, _, headers = await asked.ask("GET", path, **given)
                assert (code, headers) == (401, {"WWW-Authenticate": "Bearer"})
            assert (await asked.ask("GET", path, authorization="Bearer secret"))[0] == 200
        for path in ("/healthz", "/readyz", "/v2/health/live", "/v2/health/ready"):
            assert (await asked.ask("GET", path))[0] == 200

    asyncio.run(work())


def test_the_sooner_of_the_two_deadlines_counts() -> None:
    async def work() -> None:
        asked = Asked(deadline_s=0.03)
        asked.model.gate.clear()
        code, answer, _ = await asked.ask("POST", "/v1/models/m:predict", ROWS)
        assert (code, "did not answer" in answer["error"]) == (504, True)
        patient = Asked(deadline_s=math.inf)
        patient.model.gate.clear()
        code, _, _ = await patient.ask(
            "POST", "/v1/models/m:predict", ROWS, x_request_timeout_ms="20"
        )
        assert code == 504
        for odd in ("x", "-1", "0", "1.5", ""):
            told = {"x_request_timeout_ms": odd}
            assert (await patient.ask("POST", "/v1/models/m:predict", ROWS, **told))[0] == 400

    asyncio.run(work())


def test_under_overload_a_malformed_body_is_refused_unread_and_else_it_is_400() -> None:
    async def work() -> None:
        asked = Asked(deadline_s=1.0)
        assert (await asked.ask("POST", "/v1/models/m:predict", b"{no"))[0] == 400
        asked.model.gate.clear()
        slow = asyncio.create_task(asked.ask("POST", "/v1/models/m:predict", ROWS))
        while not asked.model.calls:
            await asyncio.sleep(0.001)
        version = asked.backends.table.find("m")
        asked.backends.batcher(version, signature_of(version, "")).queue.call_s = 60.0
        assert (await asked.ask("POST", "/v1/models/m:predict", b"{no"))[0] == 503
        asked.model.gate.set()
        assert (await slow)[0] == 200

    asyncio.run(work())


def test_a_compressed_body_is_415() -> None:
    assert ask("POST", "/v1/models/m:predict", ROWS, content_encoding="gzip")[0] == 415


def test_while_draining_nothing_new_is_taken() -> None:
    async def work() -> None:
        asked = Asked()
        asked.front.draining = True
        assert (await asked.ask("POST", "/v1/models/m:predict", ROWS))[0] == 503
        assert (await asked.ask("GET", "/readyz"))[0] == 503
        assert (await asked.ask("GET", "/healthz"))[0] == 200

    asyncio.run(work())


def test_every_request_is_counted_by_route_and_status() -> None:
    async def work() -> None:
        asked = Asked()
        await asked.ask("POST", "/v1/models/m:predict", ROWS)
        await asked.ask("POST", "/v1/models/m:predict", b"{")
        page = (await asked.ask("GET", "/metrics"))[1].decode()
        assert 'tfdyno_requests_total{route="predict",code="200"} 1\n' in page
        assert 'tfdyno_requests_total{route="predict",code="400"} 1\n' in page
        assert 'tfdyno_rows_total{model="m",version="3"} 2\n' in page
        assert 'tfdyno_batch_rows_bucket{model="m",version="3",le="2"} 1\n' in page
        assert 'tfdyno_queue_rows{model="m",version="3"} 0\n' in page

    asyncio.run(work())


def test_the_model_of_kserve_is_described_and_ready() -> None:
    code, answer, _ = ask("GET", "/v2/models/m")
    assert code == 200
    assert answer["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
    assert answer["versions"] == ["3"]
    assert ask("GET", "/v2/models/m/versions/3/ready")[0] == 200
    assert ask("GET", "/v2/models/n/ready")[0] == 404
