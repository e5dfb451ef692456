"""Triton's model repository: as expected, and as its own configuration reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.render.plans import check_golden
from tests.render.serving_plans import COMPOSE, checked_by_schemas, full, small
from tests.served import run_serving

from tfdyno.render.serving.triton import (
    compose,
    config,
    model_file,
    notes,
    render_triton,
)

if TYPE_CHECKING:
    from tfdyno.core.deploy.serving_plan import ServingPlan

CONFIG = """
import sys
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInstanceGroup, ModelQueuePolicy
found = text_format.Parse(sys.argv[1], ModelConfig())
assert (found.name, found.platform, found.max_batch_size) == ("Fashion_cnn", "onnxruntime_onnx", 32)
(group,) = found.instance_group
assert (group.kind, group.count) == (ModelInstanceGroup.KIND_GPU, 2)
batching = found.dynamic_batching
assert batching.max_queue_delay_microseconds == 4500
policy = batching.default_queue_policy
assert policy.timeout_action == ModelQueuePolicy.REJECT
assert (policy.default_timeout_microseconds, policy.max_queue_size) == (250000, 256)
for text in sys.argv[2:]:
    text_format.Parse(text, ModelConfig())
"""


def plans() -> list[ServingPlan]:
    return [
        full("triton"),
        small("triton"),
        small("triton", kind="onnx", max_batch_size=1),
        small("triton", kind="tensorrt", gpus=1),
    ]


def test_the_files_are_as_expected() -> None:
    for name, plan in (("small", small("triton")), ("full", full("triton"))):
        for path, text in render_triton(plan).items():
            check_golden(f"serving/triton-{name}/{path.rpartition('/')[2]}", text)


def test_the_client_of_triton_reads_every_configuration() -> None:
    done = run_serving(CONFIG, *map(config, plans()))
    assert done.returncode == 0, done.stderr


def test_the_schema_of_compose_takes_the_file() -> None:
    for plan in plans():
        checked_by_schemas(COMPOSE, compose(plan))


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("savedmodel", "models/cnn/3/model.savedmodel"),
        ("onnx", "models/cnn/3/model.onnx"),
        ("tensorrt", "models/cnn/3/model.plan"),
    ],
)
def test_the_model_is_called_as_triton_looks_for_it(kind: str, path: str) -> None:
    assert model_file(small("triton", kind=kind, version=3, gpus=1)) == path


def test_without_batches_there_is_no_batching() -> None:
    text = config(small("triton", max_batch_size=1))
    assert "max_batch_size: 0" in text
    assert "dynamic_batching" not in text


def test_only_an_engine_of_tensorrt_has_a_preferred_size() -> None:
    # Elsewhere it would end the wait for a fuller batch.
    assert "preferred_batch_size: 64" in config(small("triton", kind="tensorrt", gpus=1))
    assert "preferred_batch_size" not in config(full("triton"))


def test_a_saved_model_is_told_of_the_last_release_for_it() -> None:
    (said,) = notes(small("triton"))
    assert "Triton 25.02 is the last release" in said
    assert said in compose(small("triton")).replace("\n# ", " ")
    assert notes(full("triton")) == ()
