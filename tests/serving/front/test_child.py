"""The front process before a real Triton: what a supervisor and real clients see."""

from __future__ import annotations

import concurrent.futures
import json
import os
import random
import socket
import subprocess
import threading
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.fronts import ROOT, FrontProcess, at, front, models, toys
from tests.served import QUIET, serving_python

import fuzz_serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = {"instances": [[1, 2, 3], [4, 5, 6]]}
BY_HAND = [[4, 7], [10, 16]]
UNKNOWN = "InvalidArgumentError: 666.0 is not in the vocabulary"
SAMPLE = 1000
ALL = 100_000
MIXED = 20_000


def free_port() -> int:
    """The first of three free ports in a row."""
    for port in range(19320, 19380, 3):
        try:
            for each in range(port, port + 3):
                socket.create_server(("127.0.0.1", each)).close()
        except OSError:
            continue
        return port
    raise AssertionError("no free ports")


@pytest.fixture(scope="module")
def triton_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    port = free_port()
    with toys(port, tmp_path_factory.mktemp("toys")):
        yield port


@pytest.fixture(scope="module")
def served(triton_port: int) -> Iterator[FrontProcess]:
    with front(grpc_port=0, max_queue=256, deadline_ms=20_000) as process:
        process.serve(models(triton_port))
        yield process


def test_rows_columns_and_kserve_are_answered_by_the_model(served: FrontProcess) -> None:
    assert served.predict(ROWS) == (200, {"predictions": BY_HAND})
    assert served.predict({"inputs": ROWS["instances"]}) == (200, {"outputs": BY_HAND})
    tensor = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [[1, 2, 3]]}
    code, answer, _ = served.ask("POST", "/v2/models/m/infer", {"inputs": [tensor]})
    assert (code, answer["outputs"][0]["data"]) == (200, [4, 7])


def test_several_inputs_and_outputs_keep_their_names(served: FrontProcess) -> None:
    rows = [{"a": [1, 2], "b": [3]}, {"a": [4, 5], "b": [6]}]
    assert served.predict({"instances": rows, "signature_name": "pair"}) == (
        200,
        {"predictions": [{"sum": [4, 5], "twice": [6]}, {"sum": [10, 11], "twice": [12]}]},
    )


def test_strings_go_to_the_model_and_come_back(served: FrontProcess) -> None:
    body = {"instances": [["ab"], [{"b64": "Yw=="}]], "signature_name": "text"}
    assert served.predict(body) == (
        200,
        {"predictions": [
            {"upper": ["AB"], "raw_bytes": [{"b64": "YWI="}]},
            {"upper": ["C"], "raw_bytes": [{"b64": "Yw=="}]},
        ]},
    )  # fmt: skip


def test_requests_from_many_clients_share_calls_and_one_bad_value_fails_alone(
    served: FrontProcess,
) -> None:
    def one(number: int) -> tuple[int, Any]:
        return served.predict({"instances": [[666 if number == 50 else number, 0, 0]]})

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(one, range(200)))
    for number, (code, answer) in enumerate(answers):
        if number == 50:
            assert (code, answer) == (400, {"error": f"ValueError: {UNKNOWN}"})
        else:
            assert (code, answer) == (200, {"predictions": [[number, 0]]})
    page = served.ask("GET", "/metrics")[1].decode()
    lines = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    assert float(lines['tfdyno_batch_rows_count{model="m",version="3"}']) < 200


def test_each_of_many_mixed_requests_is_told_of_its_own_value(served: FrontProcess) -> None:
    mixed(served, SAMPLE)


@pytest.mark.slow
def test_twenty_thousand_mixed_requests_have_no_wrong_addressee(served: FrontProcess) -> None:
    mixed(served, MIXED)


def mixed(served: FrontProcess, count: int) -> None:
    """Every third request has a value that the model rejects, told by this very value."""

    def one(number: int) -> tuple[tuple[int, Any], tuple[int, Any]]:
        if number % 3:
            return served.predict({"instances": [[number, 0, 0]]}), (
                200,
                {"predictions": [[number, 0]]},
            )
        value = 70_000.0 + number
        told = f"ValueError: InvalidArgumentError: {value!r} is not in the vocabulary"
        return served.predict({"instances": [[value, 0, 0]]}), (400, {"error": told})

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        wrong = [(got, due) for got, due in pool.map(one, range(count)) if got != due]
    assert wrong == []


def test_a_sample_of_damaged_requests_gets_no_5xx(served: FrontProcess) -> None:
    fuzzed(served, SAMPLE)


@pytest.mark.slow
def test_a_hundred_thousand_damaged_requests_get_no_5xx(served: FrontProcess) -> None:
    fuzzed(served, ALL)


def fuzzed(served: FrontProcess, count: int) -> None:
    url = f"http://127.0.0.1:{served.port}"
    target = fuzz_serving.target_of(url, "m", random.Random(3))
    tally = fuzz_serving.run(target, range(count), 3)
    assert tally.failures == []
    assert sum(tally.counts.values()) == count
    assert served.process.poll() is None


def test_curl_gets_what_tensorflow_serving_would_give(served: FrontProcess) -> None:
    answer = subprocess.run(
        ["curl", "-s", "-d", json.dumps(ROWS), f"http://127.0.0.1:{served.port}/v1/models/m:predict"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(answer.stdout) == {"predictions": BY_HAND}


TRITON_CLIENT = """
import sys
import numpy as np
import tritonclient.http as http
client = http.InferenceServerClient(sys.argv[1])
assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("m")
assert client.get_model_metadata("m")["inputs"][0]["datatype"] == "FP32"
x = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float32)
for binary in (True, False):
    put = http.InferInput("x", [2, 3], "FP32")
    put.set_data_from_numpy(x, binary_data=binary)
    ask = http.InferRequestedOutput("y", binary_data=binary)
    print(client.infer("m", [put], outputs=[ask], request_id="7").as_numpy("y").tolist())
"""
STUB_CLIENT = """
import sys
import grpc, numpy as np
from tfdyno.serving.front import grpc as front_grpc
from tfdyno.serving.front.proto import array_of, proto_of
from tfdyno.serving.front.table import TensorSpec
from tensorflow_serving.apis import (
    get_model_metadata_pb2, get_model_status_pb2, model_service_pb2_grpc, predict_pb2,
    prediction_service_pb2_grpc,
)
channel = grpc.insecure_channel(sys.argv[1])
stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
x, y = (TensorSpec(name=n, dtype="float32", shape=(None, s)) for n, s in (("x", 3), ("y", 2)))
asked = predict_pb2.PredictRequest()
asked.model_spec.name = "m"
asked.inputs["x"].CopyFrom(proto_of(np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float32), x))
reply = stub.Predict(asked, timeout=60)
print(array_of(reply.outputs["y"], y).tolist(), reply.model_spec.version.value)
def code(change):
    wrong = predict_pb2.PredictRequest()
    wrong.CopyFrom(asked)
    change(wrong)
    try:
        stub.Predict(wrong, timeout=60)
    except grpc.RpcError as error:
        return error.code().name
def name(r): r.model_spec.name = "n"
def version(r): r.model_spec.version.value = 9
def dtype(r): r.inputs["x"].dtype = 2
def size(r): r.inputs["x"].tensor_content = b"1234"
def shape(r): r.inputs["x"].tensor_shape.dim[0].size = -1
def extra(r): r.inputs["z"].dtype = 1
def output(r): r.output_filter.append("z")
def huge(r):  # one value for so many rows
    r.inputs["x"].tensor_content = b""
    r.inputs["x"].float_val.append(7)
    r.inputs["x"].tensor_shape.dim[0].size = 2**24
print(*(code(each) for each in (name, version, dtype, size, shape, extra, output, huge)))
told = get_model_metadata_pb2.GetModelMetadataRequest()
told.model_spec.name = "m"
told.metadata_field.append("signature_def")
packed, signatures = stub.GetModelMetadata(told), get_model_metadata_pb2.SignatureDefMap()
packed.metadata["signature_def"].Unpack(signatures)
print(sorted(signatures.signature_def))
status = get_model_status_pb2.GetModelStatusRequest()
status.model_spec.name = "m"
entry = model_service_pb2_grpc.ModelServiceStub(channel).GetModelStatus(status)
print([(v.version, v.State.Name(v.state)) for v in entry.model_version_status])
"""


def client(source: str, address: str) -> list[str]:
    done = subprocess.run(
        [serving_python(), "-c", source, address],
        capture_output=True, text=True, timeout=120, check=False,
        env={**QUIET, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_tritons_own_client_reads_it_as_a_triton(served: FrontProcess) -> None:
    lines = client(TRITON_CLIENT, f"127.0.0.1:{served.port}")
    assert lines == [str([[4.0, 7.0], [10.0, 16.0]])] * 2


def test_the_official_stubs_get_predictions_codes_and_metadata(served: FrontProcess) -> None:
    invalid = "INVALID_ARGUMENT"
    assert client(STUB_CLIENT, f"127.0.0.1:{served.grpc_port}") == [
        "[[4.0, 7.0], [10.0, 16.0]] 3",
        " ".join(["NOT_FOUND", "NOT_FOUND", *[invalid] * 6]),
        "['pair', 'serving_default', 'text']",
        "[(3, 'AVAILABLE')]",
    ]


@pytest.mark.slow
def test_a_new_version_takes_over_without_a_lost_request(
    served: FrontProcess, triton_port: int, tmp_path: Path
) -> None:
    port = free_port()
    stop, codes, versions = threading.Event(), list[int](), set[str]()

    def load() -> None:
        while not stop.is_set():
            codes.append(served.predict(ROWS)[0])

    with toys(port, tmp_path):
        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        for turn in range(6):
            now, before = (port, triton_port) if turn % 2 == 0 else (triton_port, port)
            served.serve(models(now, version=str(turn + 4)))
            assert served.event() == {"event": "idle", "address": at(before)}
            status = served.ask("GET", "/v1/models/m")[1]["model_version_status"]
            versions.add(status[0]["version"])
            time.sleep(0.05)
        stop.set()
        for thread in threads:
            thread.join()
        served.serve(models(triton_port))
    assert set(codes) == {200}
    assert versions == {"4", "5", "6", "7", "8", "9"}


def test_a_drain_finishes_what_is_under_way_and_ends(triton_port: int) -> None:
    with front() as process:
        process.serve(models(triton_port))
        url = f"http://127.0.0.1:{process.port}/v1/models/m:predict"
        many = json.dumps({"instances": [[1, 2, 3]] * 20_000}).encode()
        answers: list[int] = []

        def ask() -> None:
            with urllib.request.urlopen(url, many, timeout=30) as answer:
                answers.append(len(json.load(answer)["predictions"]))

        thread = threading.Thread(target=ask)
        thread.start()
        until_s = time.monotonic() + 60
        while "calls_in_flight{model" not in (page := process.ask("GET", "/metrics")[1].decode()):
            assert time.monotonic() < until_s, page
        process.say(command="drain")
        assert process.event() == {"event": "drained"}
        thread.join()
        assert answers == [20_000]
        assert process.process.wait(60) == 0


def test_a_port_in_use_is_told_and_ends_the_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = subprocess.run(
            [serving_python(), "-m", "tfdyno.serving.front.child"],
            input=json.dumps({"port": taken.getsockname()[1]}) + "\n",
            capture_output=True, text=True, timeout=60, check=False,
            env={"PYTHONPATH": str(ROOT / "src")},
        )  # fmt: skip
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert (told["event"], told["kind"]) == ("failed", "usage")
    assert "cannot listen on 127.0.0.1:" in told["what"]
    assert "in use" in told["why"]


SCHEMATHESIS_CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance"
)


@pytest.mark.slow
def test_schemathesis_finds_nothing_against_the_document(
    served: FrontProcess, tmp_path: Path
) -> None:
    program = os.environ.get("TFDYNO_SCHEMATHESIS")
    if not program:
        pytest.skip("TFDYNO_SCHEMATHESIS names no program `schemathesis`")
    done = subprocess.run(
        [program, "run", f"http://127.0.0.1:{served.port}/openapi.json", "--seed", "1",
         "--max-examples", "100",
         "-H", "X-Request-Timeout-Ms: 20000", "--checks", SCHEMATHESIS_CHECKS],
        capture_output=True, text=True, timeout=540, check=False, cwd=tmp_path,
    )  # fmt: skip
    print(done.stdout[-1500:])
    assert done.returncode == 0, done.stdout[-6000:]
