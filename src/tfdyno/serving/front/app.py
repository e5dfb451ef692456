"""Routes: which request means what, who may ask, and how an error is told."""

from __future__ import annotations

import hmac
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from tfdyno.serving.front.messages import (
    HttpRequest,
    HttpResponse,
    NotAllowed,
    Unauthorized,
    defect,
    json_response,
    refusal,
)
from tfdyno.serving.front.openapi import DOCS_PAGE, openapi
from tfdyno.serving.front.predict import read_body, read_inputs, reply
from tfdyno.serving.front.queue import Deadline, deadline_of
from tfdyno.serving.front.status import metadata, status
from tfdyno.serving.front.table import Refused, signature_of
from tfdyno.serving.front.v2 import check_outputs, read_v2, v2_inputs, v2_metadata, v2_reply

if TYPE_CHECKING:
    from tfdyno.serving.front.backends import Backends
    from tfdyno.serving.front.metrics import FrontMetrics

_MODEL = (
    r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>\d{1,18})|/labels/(?P<label>[^/:]+))?"
)
_MODEL_2 = r"/v2/models/(?P<name>[^/:]+)(?:/versions/(?P<version>\d{1,18}))?"
Found = dict[str, str | None]
Answering = Callable[[HttpRequest, Found], Awaitable[HttpResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Route:
    name: str
    method: str
    pattern: re.Pattern[str]
    answer: Answering
    is_open: bool = False


class Front:
    """Answers every request; holds no state of its own but the token and the drain."""

    def __init__(
        self,
        backends: Backends,
        metrics: FrontMetrics,
        *,
        token: str | None,
        deadline_s: float,
        clock: Callable[[], float],
        lag_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.draining = False
        self._backends, self._metrics, self._clock = backends, metrics, clock
        self._authorization = f"Bearer {token}".encode() if token else None
        self._deadline_s, self._lag_s = deadline_s, lag_s
        self._routes = tuple(self._all_routes())

    async def handle(self, request: HttpRequest) -> HttpResponse:
        """Return the answer to a request, with what went wrong in it as its status."""
        route, response = "none", None
        try:
            route_, found = self._route(request)
            route = route_.name
            if not route_.is_open:
                self._check_token(request.headers)
            response = await route_.answer(request, found)
        except Refused as refused:
            response = refusal(refused)
            if refused.code in (429, 503, 504):
                self._metrics.refused.add(code=str(refused.code))
        except Exception as error:
            response = refusal(defect(error))
        self._metrics.requests.add(route=route, code=str(response.code))
        self._metrics.seconds.add(self._clock() - request.begin_s, route=route)
        return response

    def _route(self, request: HttpRequest) -> tuple[_Route, Found]:
        try:
            path = unquote(request.target.split(b"?", 1)[0].decode("ascii"), errors="strict")
        except UnicodeDecodeError:
            raise Refused(400, "The path is no UTF-8") from None
        method = "GET" if request.method == "HEAD" else request.method
        allowed = []
        for route in self._routes:
            if match := route.pattern.fullmatch(path):
                if route.method == method:
                    return route, match.groupdict()
                allowed.append("GET, HEAD" if route.method == "GET" else route.method)
        if allowed:
            raise NotAllowed(", ".join(allowed))
        raise Refused(404, f"There is nothing at {path[:200]}")

    def admit(self, headers: Mapping[bytes, bytes]) -> Refused | None:
        """Return why a body is not read: none is without the token, wherever it is sent."""
        try:
            self._check_token(headers)
        except Unauthorized as refused:
            self._metrics.requests.add(route="none", code=str(refused.code))
            return refused
        return None

    def _check_token(self, headers: Mapping[bytes, bytes]) -> None:
        given = headers.get(b"authorization", b"")
        if self._authorization and not hmac.compare_digest(given, self._authorization):
            raise Unauthorized

    def _all_routes(self) -> list[_Route]:
        def route(
            name: str, method: str, pattern: str, answer: Answering, *, is_open: bool = False
        ) -> _Route:
            compiled = re.compile(pattern)
            return _Route(
                name=name, method=method, pattern=compiled, answer=answer, is_open=is_open
            )

        return [
            route("predict", "POST", _MODEL + ":predict", self._predict),
            route("infer", "POST", _MODEL_2 + "/infer", self._infer),
            route("status", "GET", _MODEL, self._status),
            route("metadata", "GET", _MODEL + "/metadata", self._metadata),
            route("other", "POST", _MODEL + ":(?P<verb>classify|regress)", self._other),
            route("healthz", "GET", "/healthz|/v2/health/live", _alive, is_open=True),
            route("readyz", "GET", "/readyz|/v2/health/ready", self._ready, is_open=True),
            route("v2", "GET", "/v2", _server),
            route("v2_model", "GET", _MODEL_2, self._v2_model),
            route("v2_ready", "GET", _MODEL_2 + "/ready", self._v2_ready),
            route("metrics", "GET", "/metrics", self._metrics_page),
            route("openapi", "GET", "/openapi.json", self._openapi),
            route("docs", "GET", "/docs", _docs),
        ]

    def _deadline(self, request: HttpRequest) -> Deadline:
        """Return until when an answer is of use, by the server and by the client."""
        if self.draining:
            raise Refused(503, "The server is shutting down", retry_after_s=1)
        given = request.headers.get(b"x-request-timeout-ms")
        client_s = math.inf
        if given is not None:
            if not given.isdigit() or not 0 < int(given) < 10**9:
                raise Refused(400, "X-Request-Timeout-Ms is no whole number of milliseconds")
            client_s = int(given) / 1e3
        return deadline_of(request.begin_s, self._deadline_s, client_s, self._lag_s())

    async def _predict(self, request: HttpRequest, found: Found) -> HttpResponse:
        deadline = self._deadline(request)
        version = self._backends.table.find(
            found["name"] or "", version=found["version"], label=found["label"]
        )
        self._backends.admit(version, deadline)
        _check_plain(request)
        body = read_body(request.body)
        signature = signature_of(version, body.signature_name)
        batcher = self._backends.batcher(version, signature)
        batcher.admit(deadline)
        inputs = read_inputs(body, signature)
        answer = await batcher.infer(inputs, deadline)
        lists = {face.name: answer.lists(face) for face in signature.outputs}
        rows = isinstance(body.instances, msgspec.Raw)
        return HttpResponse(code=200, body=reply(lists, rows=rows, finite=answer.outputs.finite()))

    async def _infer(self, request: HttpRequest, found: Found) -> HttpResponse:
        deadline = self._deadline(request)
        version = self._backends.table.find(found["name"] or "", version=found["version"])
        self._backends.admit(version, deadline)
        _check_plain(request)
        asked = read_v2(request.body, _head_bytes(request))
        signature = signature_of(version, asked.body.parameters.signature_name)
        batcher = self._backends.batcher(version, signature)
        batcher.admit(deadline)
        check_outputs(asked, signature)
        answer = await batcher.infer(v2_inputs(asked, signature), deadline)
        body, head_bytes = v2_reply(asked, answer, version, signature)
        if head_bytes is None:
            return HttpResponse(code=200, body=body)
        headers = (("Inference-Header-Content-Length", str(head_bytes)),)
        kind = "application/octet-stream"
        return HttpResponse(code=200, body=body, content_type=kind, headers=headers)

    async def _status(self, request: HttpRequest, found: Found) -> HttpResponse:
        table, name = self._backends.table, found["name"] or ""
        return json_response(status(table, name, version=found["version"], label=found["label"]))

    async def _metadata(self, request: HttpRequest, found: Found) -> HttpResponse:
        version = self._backends.table.find(
            found["name"] or "", version=found["version"], label=found["label"]
        )
        return json_response(metadata(version))

    async def _other(self, request: HttpRequest, found: Found) -> HttpResponse:
        raise Refused(
            501, f":{found['verb']} needs tf.Example input and is not served; use :predict"
        )

    async def _ready(self, request: HttpRequest, found: Found) -> HttpResponse:
        is_ready = not self.draining and any(
            served.versions for served in self._backends.table.models.values()
        )
        return json_response({"ready": is_ready}, code=200 if is_ready else 503)

    async def _v2_model(self, request: HttpRequest, found: Found) -> HttpResponse:
        name = found["name"] or ""
        version = self._backends.table.find(name, version=found["version"])
        numbers = sorted(self._backends.table.models[name].versions, key=int)
        return json_response(v2_metadata(version, signature_of(version, None), numbers))

    async def _v2_ready(self, request: HttpRequest, found: Found) -> HttpResponse:
        version = self._backends.table.find(found["name"] or "", version=found["version"])
        return json_response({"name": version.model, "ready": True})

    async def _metrics_page(self, request: HttpRequest, found: Found) -> HttpResponse:
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return HttpResponse(code=200, body=self._metrics.page().encode(), content_type=kind)

    async def _openapi(self, request: HttpRequest, found: Found) -> HttpResponse:
        return json_response(
            openapi(self._backends.table, with_token=self._authorization is not None)
        )


def _check_plain(request: HttpRequest) -> None:
    if request.headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Refused(415, "A compressed body is not read")


def _head_bytes(request: HttpRequest) -> int | None:
    given = request.headers.get(b"inference-header-content-length")
    if given is None:
        return None
    if not given.isdigit() or len(given) > 12:
        raise Refused(400, "Inference-Header-Content-Length is no whole number")
    return int(given)


async def _alive(request: HttpRequest, found: Found) -> HttpResponse:
    return json_response({"live": True})


async def _server(request: HttpRequest, found: Found) -> HttpResponse:
    return json_response({"name": "tfdyno", "version": "1", "extensions": ["binary_tensor_data"]})


async def _docs(request: HttpRequest, found: Found) -> HttpResponse:
    return HttpResponse(code=200, body=DOCS_PAGE, content_type="text/html; charset=utf-8")
