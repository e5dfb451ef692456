"""TensorFlow Serving's gRPC services with the official stubs; same queue as REST.

Imported only when a gRPC port is given. What they have beyond this answers UNIMPLEMENTED.
"""

from __future__ import annotations

import asyncio
import hmac
import math
from typing import TYPE_CHECKING, Any

import grpc

# Before the stubs: it lets them find TensorFlow's messages without loading TensorFlow.
from tfdyno.serving.front.proto import array_of, describe, proto_of  # isort: skip
from google.protobuf import any_pb2
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from tfdyno.serving.front.messages import defect
from tfdyno.serving.front.predict import check_rows
from tfdyno.serving.front.queue import deadline_of
from tfdyno.serving.front.status import version_numbers
from tfdyno.serving.front.table import Refused, Signature, TensorSpec, Version, signature_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tfdyno.core.base.untyped import Spec, Value
    from tfdyno.serving.front.backends import Backends
    from tfdyno.serving.front.metrics import FrontMetrics

CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT, 401: grpc.StatusCode.UNAUTHENTICATED,
    404: grpc.StatusCode.NOT_FOUND, 429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    500: grpc.StatusCode.INTERNAL, 503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}  # fmt: skip
"""gRPC's codes of the statuses that REST has for the same errors."""


class GrpcFace(
    prediction_service_pb2_grpc.PredictionServiceServicer,
    model_service_pb2_grpc.ModelServiceServicer,
):
    """PredictionService and ModelService, as far as REST has them."""

    def __init__(
        self,
        backends: Backends,
        metrics: FrontMetrics,
        *,
        token: str | None,
        deadline_s: float,
        max_bytes: int,
        lag_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.max_bytes = max_bytes
        self.draining = False
        self._backends, self._metrics = backends, metrics
        self._deadline_s, self._lag_s = deadline_s, lag_s
        self._authorization = f"Bearer {token}".encode() if token else None

    async def _told(
        self,
        route: str,
        context: Value,
        answer: Callable[[], Awaitable[Any]],
    ) -> Value:
        loop = asyncio.get_running_loop()
        begin_s, code = loop.time(), 200
        try:
            self._check_token(context)
            try:
                return await answer()
            except Refused:
                raise
            except Exception as error:
                raise defect(error) from None
        except Refused as refused:
            code = refused.code
            if code in (429, 503, 504):
                self._metrics.refused.add(code=str(code))
            await context.abort(CODES.get(code, grpc.StatusCode.UNKNOWN), refused.text)
        finally:
            self._metrics.requests.add(route=route, code=str(code))
            self._metrics.seconds.add(loop.time() - begin_s, route=route)

    def _check_token(self, context: Value) -> None:
        given = dict(context.invocation_metadata()).get("authorization", "")
        if self._authorization and not hmac.compare_digest(given.encode(), self._authorization):
            raise Refused(401, "Send the token as metadata: authorization: Bearer TOKEN")

    def _find(self, spec: Spec) -> Version:
        number = str(spec.version.value) if spec.HasField("version") else None
        return self._backends.table.find(
            spec.name, version=number, label=spec.version_label or None
        )

    async def Predict(self, request: Value, context: Value) -> Value:  # noqa: N802
        """Answer one request for a prediction."""
        return await self._told("grpc_predict", context, lambda: self._predict(request, context))

    async def _predict(self, request: Value, context: Value) -> Value:
        if self.draining:
            raise Refused(503, "The server is shutting down")
        version = self._find(request.model_spec)
        signature = signature_of(version, request.model_spec.signature_name or None)
        names = {face.name for face in signature.inputs}
        if set(request.inputs) != names:
            raise Refused(400, f"The inputs must be {', '.join(sorted(names))}")
        outputs = _asked(request.output_filter, signature)
        left_s = context.time_remaining()
        now_s = asyncio.get_running_loop().time()
        client_s = math.inf if left_s is None else left_s
        deadline = deadline_of(now_s, self._deadline_s, client_s, self._lag_s())
        batcher = self._backends.batcher(version, signature)
        batcher.admit(deadline)
        arrays = {
            face.name: array_of(request.inputs[face.name], face, self.max_bytes)
            for face in signature.inputs
        }
        check_rows(arrays, signature)
        answer = await batcher.infer(arrays, deadline)
        reply = predict_pb2.PredictResponse()
        _name(reply.model_spec, version, request.model_spec.signature_name or "serving_default")
        for face in outputs:
            reply.outputs[face.name].CopyFrom(proto_of(answer.array(face.name), face))
        return reply

    async def GetModelMetadata(self, request: Value, context: Value) -> Value:  # noqa: N802
        """Return the signatures of a version."""
        return await self._told("grpc_metadata", context, lambda: self._metadata(request))

    async def _metadata(self, request: Value) -> Value:
        if list(request.metadata_field) != ["signature_def"]:
            raise Refused(400, "metadata_field must be signature_def")
        version = self._find(request.model_spec)
        told = get_model_metadata_pb2.SignatureDefMap()
        for name, signature in version.signatures.items():
            describe(told.signature_def[name], signature)
        packed = any_pb2.Any()
        packed.Pack(told)
        reply = get_model_metadata_pb2.GetModelMetadataResponse()
        _name(reply.model_spec, version, "")
        reply.metadata["signature_def"].CopyFrom(packed)
        return reply

    async def GetModelStatus(self, request: Value, context: Value) -> Value:  # noqa: N802
        """Return the versions that are there."""
        return await self._told("grpc_status", context, lambda: self._status(request))

    async def _status(self, request: Value) -> Value:
        spec = request.model_spec
        number = str(spec.version.value) if spec.HasField("version") else None
        label = spec.version_label or None
        numbers = version_numbers(self._backends.table, spec.name, version=number, label=label)
        reply = get_model_status_pb2.GetModelStatusResponse()
        for number in numbers:
            entry = reply.model_version_status.add()
            entry.version = int(number)
            entry.state = get_model_status_pb2.ModelVersionStatus.AVAILABLE
        return reply


def _asked(wanted: Value, signature: Signature) -> tuple[TensorSpec, ...]:
    unknown = set(wanted) - {face.name for face in signature.outputs}
    if unknown:
        raise Refused(400, f"There is no output {min(unknown)[:100]!r}")
    return tuple(face for face in signature.outputs if not wanted or face.name in wanted)


def _name(spec: Spec, version: Version, signature_name: str) -> None:
    spec.name, spec.signature_name = version.model, signature_name
    spec.version.value = int(version.number)


async def listen(
    face: GrpcFace, *, host: str, port: int, tls: tuple[bytes, bytes] | None
) -> tuple[Any, int]:
    """Start the gRPC server; gives it and the port it got. ``tls`` is key and certificate.

    Raises:
        OSError: The port is in use.
    """
    options = [
        ("grpc.max_receive_message_length", face.max_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),
    ]
    server = grpc.aio.server(options=options)
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(face, server)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(face, server)
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        bound = (
            server.add_secure_port(address, grpc.ssl_server_credentials([tls]))
            if tls
            else server.add_insecure_port(address)
        )
    except RuntimeError as error:
        raise OSError(str(error)) from None
    await server.start()
    return server, bound
