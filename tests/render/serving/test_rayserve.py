"""Ray Serve's application: as expected, compiled, and run for real where Ray Serve is."""

from __future__ import annotations

import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.render.plans import check_golden
from tests.render.serving_plans import full, small

from tfdyno.core.base.errors import UsageError
from tfdyno.render.serving.rayserve import config, render_rayserve

if TYPE_CHECKING:
    from collections.abc import Iterator

RAY = os.environ.get("TFDYNO_RAYSERVE_PYTHON", "")
"""An interpreter of an environment with ray[serve] and TensorFlow."""
needs_ray = pytest.mark.skipif(
    not RAY, reason="TFDYNO_RAYSERVE_PYTHON names no environment with Ray Serve and TensorFlow"
)
START_S = 240.0
QUIET = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3", "RAY_USAGE_STATS_ENABLED": "0"}
LINEAR = """
import sys
import tensorflow as tf
module = tf.Module()
module.w = tf.Variable([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
spec = tf.TensorSpec([None, 3], tf.float32, name="x")
module.call = tf.function(lambda x: {"y": x @ module.w}, input_signature=[spec])
tf.saved_model.save(module, sys.argv[1], signatures=module.call)
"""
"""(a, b, c) becomes (a + c, 2 b + c)."""
SCHEMA = """
import sys, yaml
from ray.serve.config import AutoscalingConfig
from ray.serve.schema import DeploymentSchema, ServeApplicationSchema, ServeDeploySchema
made = yaml.safe_load(sys.argv[1])
ServeDeploySchema.model_validate(made)
(application,) = made["applications"]
(deployment,) = application["deployments"]
# It drops what it does not know: every key has to be a field of it.
assert set(made) <= set(ServeDeploySchema.model_fields)
assert set(application) <= set(ServeApplicationSchema.model_fields)
assert set(deployment) <= set(DeploymentSchema.model_fields)
assert set(deployment["autoscaling_config"]) <= set(AutoscalingConfig.model_fields)
"""


def rich() -> dict[str, str]:
    return render_rayserve(full("rayserve", kind="savedmodel", storage="/mnt/models/cnn/7"))


def test_the_files_are_as_expected_and_the_code_compiles() -> None:
    check_golden("serving/small.rayserve.yaml", render_rayserve(small("rayserve"))["config.yaml"])
    check_golden("serving/full.rayserve.yaml", rich()["config.yaml"])
    compile(rich()["serve_app.py"], "serve_app.py", "exec")


def test_a_place_that_is_no_folder_is_refused() -> None:
    with pytest.raises(UsageError, match="s3://b/cnn is no folder"):
        render_rayserve(full("rayserve", kind="savedmodel", storage="s3://b/cnn"))


def test_replicas_scale_only_where_they_may() -> None:
    (fixed,) = config(small("rayserve", replicas_min=2, replicas_max=2))["applications"]
    assert fixed["deployments"][0]["num_replicas"] == 2
    (scaled,) = yaml.safe_load(rich()["config.yaml"])["applications"]
    # two batches of 32 requests at a time, and another replica beyond 70 % of them
    assert scaled["deployments"][0]["autoscaling_config"] == {
        "min_replicas": 2, "max_replicas": 9, "target_ongoing_requests": 45,
    }  # fmt: skip


def test_what_it_does_not_take_is_refused() -> None:
    with pytest.raises(UsageError, match="does not take a model of the kind onnx"):
        render_rayserve(small("rayserve", kind="onnx"))
    with pytest.raises(UsageError, match="--image is nothing that Ray Serve looks at"):
        render_rayserve(small("rayserve", image="a:1"))


@needs_ray
@pytest.mark.slow
def test_ray_serve_takes_the_file() -> None:
    done = subprocess.run(
        [RAY, "-c", SCHEMA, rich()["config.yaml"]], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A served model, as a user starts it in the rendered folder."""
    folder = tmp_path_factory.mktemp("rayserve")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for path, text in render_rayserve(small("rayserve", port=port, cpus=1)).items():
        (folder / path).write_text(text)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | QUIET
    model = str(folder / "models" / "cnn" / "1")
    subprocess.run([RAY, "-c", LINEAR, model], check=True, env=environment, capture_output=True)
    with (folder / "log").open("w") as log:
        served = subprocess.Popen(
            [str(Path(RAY).parent / "serve"), "run", "config.yaml"],
            cwd=folder, env=environment, stdout=log, stderr=log,
        )  # fmt: skip
    url = f"http://127.0.0.1:{port}/v1/models/cnn"
    try:
        until_s = time.monotonic() + START_S
        while answer(url)[0] != 200:
            assert served.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < until_s, (folder / "log").read_text()
            time.sleep(0.5)
        yield url
    finally:
        served.send_signal(signal.SIGINT)
        served.wait(60)


def answer(url: str, body: object = None) -> tuple[int, Any]:
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data), timeout=60) as found:
            return found.status, json.load(found)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error) if error.code == 400 else None
    except OSError:
        return 0, None


@needs_ray
@pytest.mark.slow
@pytest.mark.tf
def test_requests_at_once_get_their_own_answers_and_a_bad_one_spoils_none(address: str) -> None:
    def one(number: int) -> tuple[int, Any]:
        row = [float(number), 1.0, 2.0] if number % 10 else [float(number)]
        return answer(f"{address}:predict", {"instances": [row]})

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        found = list(pool.map(one, range(200)))
    for number, (status, body) in enumerate(found):
        if number % 10:
            assert (status, body) == (200, {"predictions": [[number + 2.0, 4.0]]})
        else:
            assert status == 400
            assert "not (None, 3)" in body["error"]


@needs_ray
@pytest.mark.slow
@pytest.mark.tf
def test_the_answers_have_the_form_of_tensorflow_serving(address: str) -> None:
    predict = f"{address}:predict"
    assert answer(predict, {"inputs": [[1, 2, 3]]}) == (200, {"outputs": [[4.0, 7.0]]})
    assert answer(predict, {"inputs": {"x": [[1, 2, 3]]}})[0] == 200
    rows = [{"x": [1, 2, 3]}] * 100  # more than fit into one batch
    assert answer(predict, {"instances": rows})[1] == {"predictions": [[4.0, 7.0]] * 100}
    assert answer(f"{address}/versions/1:predict", {"instances": [[0, 0, 0]]})[0] == 200
    assert answer(address)[1]["model_version_status"][0]["state"] == "AVAILABLE"
    bad: tuple[object, ...] = (
        b"{bad",
        {},
        [],
        {"instances": []},
        {"instances": [["a", 1, 2]]},
        {"instances": [[1, 2, 3]], "inputs": []},
        {"inputs": {"y": [[1, 2, 3]]}},
        {"instances": [[[1]], 2]},
    )
    for wrong in bad:
        assert answer(predict, wrong)[0] == 400, wrong
    assert answer(f"{address}x:predict", {"instances": [[1, 2, 3]]})[0] == 404
