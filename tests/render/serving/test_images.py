"""render/serving/images: a pinned container for every kind of model, with its source."""

from __future__ import annotations

import csv

import pytest
from tests.render.serving_plans import small

from tfdyno.core.base.errors import UsageError
from tfdyno.render.serving.images import TABLE, image_of, last_release


def test_every_row_has_a_pinned_image_and_a_source() -> None:
    with TABLE.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, strict=True))
    keys = [(row["server"], row["kind"], row["device"]) for row in rows]
    assert len(set(keys)) == len(rows)
    assert all(":" in row["image"] and "latest" not in row["image"] for row in rows)
    assert all(row["source"] for row in rows)


def test_a_gpu_gets_another_image_and_the_users_own_comes_first() -> None:
    assert image_of(small("tfserving")) == "tensorflow/serving:2.19.1"
    assert image_of(small("tfserving", gpus=1)) == "tensorflow/serving:2.19.1-gpu"
    assert image_of(small("tfserving", image="team/own:1")) == "team/own:1"


def test_the_release_after_which_triton_takes_no_saved_model_is_told() -> None:
    saved_model = small("triton")
    assert (image_of(saved_model), last_release(saved_model)) == (
        "nvcr.io/nvidia/tritonserver:25.02-py3", "25.02",
    )  # fmt: skip
    assert last_release(small("triton", kind="onnx")) == ""


def test_what_a_server_does_not_take_is_refused() -> None:
    with pytest.raises(
        UsageError, match="does not take a model of the kind onnx: its server takes"
    ):
        image_of(small("tfserving", kind="onnx"))
    with pytest.raises(UsageError, match="needs the GPU it was built for; say --gpus 1"):
        image_of(small("triton", kind="tensorrt"))
