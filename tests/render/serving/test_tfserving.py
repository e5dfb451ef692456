"""TensorFlow Serving's files: as expected, and as the official readers take them."""

from __future__ import annotations

import yaml
from tests.render.plans import check_golden
from tests.render.serving_plans import COMPOSE, checked_by_schemas, full, small
from tests.served import run_serving

from tfdyno.render.serving.tfserving import (
    batching_config,
    compose,
    models_config,
    render_tfserving,
)

MODELS = """
import sys
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig
(one,) = text_format.Parse(sys.argv[1], ModelServerConfig()).model_config_list.config
assert (one.name, one.base_path) == ("cnn", "/models/cnn"), one
assert one.model_version_policy.latest.num_versions == 1
"""
BATCHING = '''
import sys, tempfile
from pathlib import Path
from google.protobuf import text_format
from grpc_tools import protoc
# The fields of tensorflow_serving/servables/tensorflow/session_bundle_config.proto and
# tensorflow_serving/config/monitoring_config.proto, which the client's package leaves out.
text = """
syntax = "proto3";
import "google/protobuf/wrappers.proto";
message BatchingParameters {
  google.protobuf.Int64Value max_batch_size = 1;
  google.protobuf.Int64Value batch_timeout_micros = 2;
  google.protobuf.Int64Value max_enqueued_batches = 3;
  google.protobuf.Int64Value num_batch_threads = 4;
}
message PrometheusConfig { bool enable = 1; string path = 2; }
message MonitoringConfig { PrometheusConfig prometheus_config = 1; }
"""
folder = tempfile.mkdtemp()
(Path(folder) / "official.proto").write_text(text)
(Path(folder) / "google").mkdir()
import grpc_tools
included = Path(grpc_tools.__file__).parent / "_proto"
assert not protoc.main(["", f"-I{folder}", f"-I{included}", f"--python_out={folder}",
                        f"{folder}/official.proto"])
sys.path.insert(0, folder)
import official_pb2
found = text_format.Parse(sys.argv[1], official_pb2.BatchingParameters())
assert (found.max_batch_size.value, found.batch_timeout_micros.value) == (32, 4500), found
assert (found.max_enqueued_batches.value, found.num_batch_threads.value) == (8, 2), found
told = text_format.Parse(sys.argv[2], official_pb2.MonitoringConfig())
assert told.prometheus_config.enable
'''


def rich() -> dict[str, str]:
    return render_tfserving(full("tfserving", kind="savedmodel"))


def test_the_files_are_as_expected() -> None:
    for name, made in (("small", render_tfserving(small("tfserving"))), ("full", rich())):
        for path, text in made.items():
            check_golden(f"serving/tfserving-{name}/{path.rpartition('/')[2]}", text)


def test_the_queue_holds_as_many_requests_as_may_wait() -> None:
    # 256 requests in batches of 32 are 8 batches; 4.5 ms are 4,500 microseconds
    text = batching_config(full("tfserving", kind="savedmodel"))
    assert [line.strip() for line in text.splitlines() if "value" in line] == [
        "value: 32", "value: 4500", "value: 8", "value: 2",
    ]  # fmt: skip


def test_it_listens_on_loopback_and_reads_what_may_not_be_written() -> None:
    (service,) = yaml.safe_load(compose(small("tfserving")))["services"].values()
    assert service["ports"] == ["127.0.0.1:8501:8501"]
    assert all(one.endswith(":ro") for one in service["volumes"])


def test_the_official_client_reads_the_list_of_models() -> None:
    done = run_serving(MODELS, models_config(small("tfserving")))
    assert done.returncode == 0, done.stderr


def test_protocol_buffers_read_batching_and_monitoring() -> None:
    made = rich()
    checked_by_schemas(BATCHING, made["config/batching.config"], made["config/monitoring.config"])


def test_the_schema_of_compose_takes_the_file() -> None:
    for plan in (small("tfserving"), full("tfserving", kind="savedmodel")):
        checked_by_schemas(COMPOSE, compose(plan))
