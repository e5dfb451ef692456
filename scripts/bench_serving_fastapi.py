"""What many people write first: a SavedModel behind FastAPI, one call at a time, no batching.

``python bench_serving_fastapi.py SAVED_MODEL PORT``, in an environment with FastAPI and TensorFlow.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import fastapi
import pydantic
import tensorflow as tf
import uvicorn

SIZES = (-1, 28, 28, 1)


class Predict(pydantic.BaseModel):
    """The body of a request, in TensorFlow Serving's row form."""

    instances: list[Any]


def application(path: str) -> fastapi.FastAPI:
    """The routes that a load test needs."""
    model = tf.saved_model.load(path)
    call = model.signatures["serving_default"]
    given, result = "image", next(iter(call.structured_outputs))
    turn = threading.Lock()
    app = fastapi.FastAPI()

    @app.post("/v1/models/cnn:predict")
    def predict(request: Predict) -> dict[str, Any]:
        with turn:
            found = call(**{given: tf.constant(request.instances, tf.float32)})[result]
        return {"predictions": found.numpy().tolist()}

    @app.get("/v1/models/cnn/metadata")
    def metadata() -> dict[str, Any]:
        def tensor(name: str, sizes: tuple[int, ...]) -> dict[str, Any]:
            dims = [{"size": str(size)} for size in sizes]
            return {name: {"dtype": "DT_FLOAT", "tensor_shape": {"dim": dims}, "name": name}}

        sides = {"inputs": tensor(given, SIZES), "outputs": tensor(result, (-1, 10))}
        signatures = {"signature_def": {"serving_default": sides}}
        return {
            "model_spec": {"name": "cnn", "version": "1"},
            "metadata": {"signature_def": signatures},
        }

    return app


if __name__ == "__main__":
    uvicorn.run(
        application(sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]), log_level="error"
    )
