"""gRPC without a model; predictions by the official stubs are in test_child.py."""

from __future__ import annotations

from tests.runtime.fronts import FrontProcess, front, models
from tests.serving.front.test_child import client

ASKS = """
import sys
import grpc
from tfdyno.serving.front import grpc as front_grpc
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc
address, token = sys.argv[1].split(",")
stub = prediction_service_pb2_grpc.PredictionServiceStub(grpc.insecure_channel(address))
asked = predict_pb2.PredictRequest()
asked.model_spec.name = "m"
for metadata in ((), (("authorization", f"Bearer {token}"),)):
    try:
        stub.Predict(asked, timeout=60, metadata=metadata)
    except grpc.RpcError as error:
        print(error.code().name)
"""


def codes(process: FrontProcess, token: str) -> list[str]:
    return client(ASKS, f"127.0.0.1:{process.grpc_port},{token}")


def test_a_token_is_asked_for_and_a_missing_model_is_unavailable() -> None:
    with front(grpc_port=0, token="secret") as process:
        assert codes(process, "secret") == ["UNAUTHENTICATED", "UNAVAILABLE"]
        process.serve(models(9))
        assert codes(process, "secret") == ["UNAUTHENTICATED", "INVALID_ARGUMENT"]
