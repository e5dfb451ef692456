"""A model served for real: by processes of the serving environment, as its clients see it."""

from __future__ import annotations

import http.client
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psutil
import pytest
from tests.served import FAULTY, MIXING, Server, post, running, serving_python, small_models

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.deploy.model_version import Lineage
from tfdyno.core.messages.serve import ServedBatching
from tfdyno.engines.process.serving_process import Event
from tfdyno.jobs.serve._backend import error_of
from tfdyno.jobs.serve._front import ServeFront, deadline_ms
from tfdyno.jobs.serve._supervisor import MOST_FAILURES, Failures
from tfdyno.jobs.serve._versions import Policy, Watch, named_versions
from tfdyno.jobs.serve.serve import ServeRequest, check
from tfdyno.store.model_store import ModelStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.tf
RESTART_S = 10.0
"""What the requirement allows."""


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def copied(models: Path, tmp_path: Path) -> Path:
    """A folder with numbered versions that a test may change; only version 1 is in it."""
    shutil.copytree(models / "linear", tmp_path / "linear")
    return tmp_path / "linear"


@pytest.fixture
def temporary() -> Iterator[Path]:
    # Short: sockets lie in it.
    with tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as folder:
        yield Path(folder)


class Load:
    """Clients that ask without a pause, each on its own connection."""

    def __init__(self, server: Server, clients: int = 4) -> None:
        self.place = urlsplit(f"{server.url}:predict")
        self.over = threading.Event()
        self.statuses: list[int] = []
        self.answers: set[str] = set()
        self.longest_s = 0.0
        self.threads = [threading.Thread(target=self._ask) for _ in range(clients)]

    def __enter__(self) -> Load:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join(40)

    def _ask(self) -> None:
        body = json.dumps({"instances": [[1.0, 2.0, 3.0]]})
        connection = self._connected()
        while not self.over.is_set():
            began_s = time.monotonic()
            try:
                connection.request("POST", self.place.path, body)
                answer = connection.getresponse()
                status, text = answer.status, answer.read().decode()
            except OSError:
                status, text = 0, ""
                connection.close()
                connection = self._connected()
            except http.client.HTTPException:
                status, text = 0, ""
                connection.close()
                connection = self._connected()
            self.longest_s = max(self.longest_s, time.monotonic() - began_s)
            self.statuses.append(status)
            if status == 200:
                self.answers.add(text)
            else:
                time.sleep(0.05)
        connection.close()

    def _connected(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.place.hostname or "", self.place.port, timeout=30)


def processes_of(server: Server) -> list[Any]:
    return list(psutil.Process(server.process.pid).children(recursive=True))


def model_process(server: Server) -> psutil.Process:
    return next(
        one for one in psutil.Process(server.process.pid).children()
        if "tfdyno.serving.model.child" in one.cmdline()
    )  # fmt: skip


def front_process(server: Server) -> psutil.Process:
    return next(
        one for one in psutil.Process(server.process.pid).children()
        if "tfdyno.serving.front.child" in one.cmdline()
    )  # fmt: skip


def test_a_served_model_answers_as_by_hand_and_ends_with_nothing_left(
    models: Path, temporary: Path
) -> None:
    with running(str(models / "linear"), temporary=temporary) as server:
        assert server.first_line.endswith("/v1/models/linear")
        # y = x @ [[1, 0], [0, 2], [1, 1]]
        assert server.predict([[1, 2, 3], [0, 0, 1]]) == [[4.0, 7.0], [1.0, 1.0]]
        children = processes_of(server)
        assert len(children) >= 3  # the model, Triton, the front
        # Triton has a socket that no other user can reach, and no port that needs no token.
        front = front_process(server)
        assert not [one for one in children if one != front and one.net_connections("inet")]
        assert not any(folder.stat().st_mode & 0o077 for folder in temporary.iterdir())
        code, taken_s = server.end()
        assert (code, taken_s < 45.0) == (0, True)
        assert not psutil.wait_procs(children, timeout=60)[1]
        assert list(temporary.iterdir()) == []
        assert server.process.stdout
        assert server.process.stdout.read() == ""  # one line, and no other


@pytest.mark.slow
def test_a_new_version_under_load_is_served_without_a_lost_request(
    models: Path, copied: Path, temporary: Path
) -> None:
    with running(str(copied), temporary=temporary) as server, Load(server) as load:
        time.sleep(1)
        shutil.copytree(models / "second", copied / "2")
        server.wait_said("serving version 2")
        until_s = time.monotonic() + 60
        while len(processes_of(server)) > 8 and time.monotonic() < until_s:
            time.sleep(0.2)
        time.sleep(2)
        load.over.set()
        assert server.predict([[1, 2, 3]]) == [[104.0, 107.0]]
    assert set(load.statuses) == {200}
    assert len(load.statuses) > 100
    assert len(load.answers) == 2  # of the old version and of the new one, and nothing between
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_a_killed_model_process_under_load_is_back_within_ten_seconds(
    models: Path, temporary: Path
) -> None:
    with running(str(models / "linear"), temporary=temporary) as server:
        with Load(server) as load:
            time.sleep(1)
            before = load.statuses.count(200)
            killed_s = time.monotonic()
            model_process(server).kill()
            server.wait_said("serving version 1")
            back_s = time.monotonic() - killed_s
            time.sleep(1)
        assert before > 10
        assert back_s < RESTART_S * max(1.0, os.getloadavg()[0] / 2)  # beside other work: longer
        failed = [status for status in load.statuses if status != 200]
        assert failed  # told, not hidden
        assert load.longest_s < 15.0  # and nothing hangs
        assert load.statuses[-1] == 200
        assert server.end()[0] == 0
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_a_killed_front_comes_back_on_the_same_port(models: Path, temporary: Path) -> None:
    with running(str(models / "linear"), temporary=temporary) as server:
        front_process(server).kill()
        server.wait_said("serving version 1")
        assert server.predict([[1, 2, 3]]) == [[4.0, 7.0]]


@pytest.mark.slow
def test_a_damaged_new_version_leaves_the_old_one_serving(
    models: Path, copied: Path, temporary: Path
) -> None:
    with running(str(copied), temporary=temporary) as server:
        (copied / "2").mkdir()
        (copied / "2" / "saved_model.pb").write_bytes(b"no graph")
        server.wait_said("version 2 is not served")
        assert server.predict([[1, 2, 3]]) == [[4.0, 7.0]]
        shutil.rmtree(copied / "2")
        shutil.copytree(models / "third", copied / "3")
        server.wait_said("serving version 3")
        assert server.predict([[1, 2, 3]]) == [[204.0, 207.0]]


@pytest.mark.slow
def test_all_versions_are_served_side_by_side(models: Path, copied: Path, temporary: Path) -> None:
    shutil.copytree(models / "second", copied / "2")
    with running(str(copied), "--versions", "all", temporary=temporary) as server:
        until_s = time.monotonic() + 60
        while time.monotonic() < until_s:
            with urllib.request.urlopen(server.url, timeout=60) as answer:
                states = json.load(answer)["model_version_status"]
            if len(states) == 2:
                break
            time.sleep(0.2)
        row = {"instances": [[1, 2, 3]]}
        assert post(f"{server.url}/versions/1:predict", row)[1] == {"predictions": [[4.0, 7.0]]}
        assert post(f"{server.url}/versions/2:predict", row)[1] == {"predictions": [[104.0, 107.0]]}
        assert server.predict([[1, 2, 3]]) == [[104.0, 107.0]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fixed", "mean"])
def test_a_model_that_cannot_be_batched_is_served_and_says_why(
    name: str, models: Path, temporary: Path
) -> None:
    with running(str(models / name), temporary=temporary) as server:
        reason = {"fixed": "x is fixed to a batch of 2", "mean": "y does not have one row"}[name]
        server.wait_said("serving_default is served one request at a time", 5)
        assert any(reason in line for line in server.said)
        status, answer = server_post(server, {"inputs": [[1, 2, 3], [0, 0, 1]]})
        assert status == 200
        expected = {"fixed": [[4.0, 7.0], [1.0, 1.0]], "mean": [2.5, 4.0]}[name]
        assert answer["outputs"] == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("repeated", lambda n: [[n % 3 + 1, n]] * (n % 3 + 1)),
        ("centred", lambda n: [[(n % 3 + 1) / 2, n / 2], [-(n % 3 + 1) / 2, -n / 2]]),
        ("kept", lambda n: [[n % 3 + 1, n]]),
    ],
)
def test_no_client_gets_the_rows_of_another_where_a_model_mixes_them(
    name: str, answer: Callable[[int], Any], tmp_path: Path, temporary: Path
) -> None:
    models = small_models(tmp_path, MIXING)
    with running(str(models / name), temporary=temporary) as server:
        server.wait_said("serving_default is served one request at a time", 5)
        bodies = [{"inputs": [[number % 3 + 1, number], [0, 0]]} for number in range(144)]
        with ThreadPoolExecutor(24) as pool:
            answers = list(pool.map(lambda body: server_post(server, body), bodies))
    assert answers == [(200, {"outputs": answer(number)}) for number in range(144)]


def server_post(server: Server, content: object) -> tuple[int, dict[str, object]]:
    return post(f"{server.url}:predict", content)


@pytest.mark.slow
def test_a_killed_supervisor_leaves_no_process_and_no_file(models: Path, temporary: Path) -> None:
    with running(str(models / "linear"), temporary=temporary) as server:
        children = processes_of(server)
        server.process.kill()
        assert not psutil.wait_procs(children, timeout=60)[1]
    assert [one.name for one in temporary.iterdir() if list(one.rglob("*.so"))] == []


@pytest.mark.slow
def test_batching_for_a_promised_p99_says_what_it_chose(models: Path, temporary: Path) -> None:
    with running(str(models / "linear"), "--p99-ms", "50", "--json", temporary=temporary) as server:
        said = json.loads(server.first_line)
        batching = said["batching"]
        assert batching["reason"]
        assert "4.5 ms of each call are for what is beside the model" in batching["reason"]
        assert set(batching["latency_s_by_batch"]) == {"1", "2", "4", "8", "16", "32", "64"}
        assert 1 <= batching["max_batch_size"] <= 64
        server.first_line = f"ready {said['url']}"
        assert server.predict([[1, 2, 3]]) == [[4.0, 7.0]]


def test_a_host_that_others_reach_needs_a_token() -> None:
    with pytest.raises(UsageError, match="--token-file"):
        check(ServeRequest(reference="m", host="0.0.0.0", port=0))
    check(ServeRequest(reference="m", host="0.0.0.0", port=0, token="t"))
    check(ServeRequest(reference="m", host="0.0.0.0", port=0, insecure=True))


def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a certificate and its key"):
        check(ServeRequest(reference="m", port=0, tls_cert=tmp_path / "c.pem"))


def made(folder: Path, name: str, *options: str) -> tuple[Path, Path]:
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-days", "1", "-subj", "/CN=localhost", "-keyout", key, "-out", certificate, *options],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key


def test_a_certificate_that_does_not_fit_its_key_is_refused_before_anything_starts(
    tmp_path: Path,
) -> None:
    one, own_key = made(tmp_path, "one", "-nodes")
    _, other_key = made(tmp_path, "other", "-nodes")
    locked, locked_key = made(tmp_path, "locked", "-passout", "pass:secret")
    check(ServeRequest(reference="m", port=0, tls_cert=one, tls_key=own_key))
    for certificate, key in ((one, other_key), (locked, locked_key), (own_key, one)):
        with pytest.raises(UsageError, match="are no certificate with its key"):
            check(ServeRequest(reference="m", port=0, tls_cert=certificate, tls_key=key))


def test_two_faces_on_one_port_are_refused() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(UsageError, match=f"--port and --grpc-port are both {port}"):
        check(ServeRequest(reference="m", port=port, grpc_port=port))


def test_a_front_that_cannot_listen_says_why() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        front = ServeFront(
            request=ServeRequest(reference="m", port=taken.getsockname()[1]),
            python=serving_python(), hear=(events := queue.SimpleQueue[Event]()).put,
        )  # fmt: skip
        front.start(None)
        try:
            error = error_of(events.get(timeout=30))
        finally:
            front.end()
    assert isinstance(error, UsageError)
    assert "cannot listen on 127.0.0.1" in str(error)
    assert "in use" in str(error)


@pytest.fixture
def numbered(tmp_path: Path) -> Path:
    for number in (1, 2, 10):
        (tmp_path / "m" / str(number)).mkdir(parents=True)
        (tmp_path / "m" / str(number) / "saved_model.pb").write_bytes(b"graph")
    return tmp_path / "m"


@pytest.mark.parametrize(
    ("versions", "expected"),
    [("latest", [10]), ("all", [10, 2, 1]), ("1,2", [2, 1]), ("2", [2]), ("10,1", [10, 1])],
)
def test_the_newest_of_the_versions_asked_for_is_the_default(
    versions: str, expected: list[int], numbered: Path
) -> None:
    now = Policy(reference=str(numbered), versions=versions).now()
    assert [one.version for one in now] == expected


def test_a_version_that_is_not_there_is_refused_with_those_that_are(numbered: Path) -> None:
    with pytest.raises(UsageError, match="no version 3; there are 1, 2, 10"):
        Policy(reference=str(numbered), versions="3").now()


def test_versions_are_numbers_with_commas() -> None:
    assert named_versions("3, 1,3") == [3, 1]
    with pytest.raises(UsageError):
        named_versions("3,one")


def test_a_version_counts_once_its_files_have_stayed_the_same(numbered: Path) -> None:
    policy = Policy(reference=str(numbered))
    watch = Watch(policy, policy.now())
    graph = numbered / "11" / "saved_model.pb"
    graph.parent.mkdir()
    graph.write_bytes(b"half")
    assert [one.version for one in watch.look()] == [10]
    graph.write_bytes(b"half and half")
    assert [one.version for one in watch.look()] == [10]
    assert [one.version for one in watch.look()] == [11]


def test_while_the_folder_is_gone_what_was_before_goes_on(numbered: Path) -> None:
    policy = Policy(reference=str(numbered))
    watch = Watch(policy, policy.now())
    numbered.rename(numbered.with_name("away"))
    assert [one.version for one in watch.look()] == [10]


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelStore:
    """Version 1 is a SavedModel, version 2 an ONNX file."""
    store = ModelStore(tmp_path / "store")
    monkeypatch.setenv("TFDYNO_STORE", str(store.folder))
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "saved_model.pb").write_bytes(b"graph")
    (tmp_path / "net.onnx").write_bytes(b"onnx")
    at = "2026-11-23T12:00:00+00:00"
    store.add("net", tmp_path / "net", kind="savedmodel", lineage=Lineage(), added_at=at)
    store.add("net", tmp_path / "net.onnx", kind="onnx", lineage=Lineage(), added_at=at)
    return store


def test_of_a_stored_model_the_newest_that_can_be_loaded_is_served(mixed: ModelStore) -> None:
    assert [one.version for one in Policy(reference="net").now()] == [1]
    assert [one.version for one in Policy(reference="net", versions="all").now()] == [1]


@pytest.mark.parametrize("is_promoted", [True, False])
def test_a_version_that_was_named_or_promoted_is_never_exchanged_for_another(
    is_promoted: bool, mixed: ModelStore
) -> None:
    if is_promoted:
        mixed.promote("net", 2, at="2026-11-23T12:00:01+00:00")
    with pytest.raises(UsageError, match=r"net version 2 is a \.onnx file"):
        Policy(reference="net" if is_promoted else "net:2").now()


def test_a_script_is_told_to_be_exported_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("def build(): ...\n")
    with pytest.raises(UsageError, match=r"tfdyno export train\.py:build"):
        Policy(reference="train.py:build").now()


def test_failures_are_tried_again_later_and_later_then_given_up() -> None:
    failures = Failures()
    failures.add(ToolError("one"), at_start=False)
    assert failures.is_time  # the first at once
    failures.add(ToolError("two"), at_start=False)
    assert not failures.is_time
    for number in range(3, MOST_FAILURES):
        failures.add(ToolError(f"{number}"), at_start=False)
    with pytest.raises(ToolError, match="given up"):
        failures.add(ToolError("last"), at_start=False)


def test_before_the_first_answer_three_failures_are_enough() -> None:
    failures = Failures()
    failures.add(ToolError("one"), at_start=True)
    failures.add(ToolError("two"), at_start=True)
    with pytest.raises(ToolError, match="given up"):
        failures.add(ToolError("three"), at_start=True)


@pytest.mark.slow
def test_ctrl_c_ends_it_as_sigterm_does(models: Path, temporary: Path) -> None:
    with running(str(models / "linear"), temporary=temporary) as server:
        code, taken_s = server.end(signal.SIGINT)
        assert (code, taken_s < 45.0) == (0, True)


@pytest.mark.parametrize(
    ("asked", "holds", "expected"),
    [
        ({}, True, 10_000.0),
        ({"p99_ms": 20.0}, True, 20.0),
        ({"p99_ms": 20.0}, False, 10_000.0),  # a model too slow for it is served all the same
        ({"p99_ms": 20.0, "deadline_ms": 50.0}, True, 50.0),
    ],
)
def test_a_promise_is_the_deadline_unless_another_is_given(
    asked: dict[str, float], holds: bool, expected: float
) -> None:
    request = ServeRequest(reference="m", **asked)  # type: ignore[arg-type]
    batching = ServedBatching(max_batch_size=1, max_delay_ms=0.0, holds=holds)
    assert deadline_ms(request, batching) == expected


def test_a_version_that_xla_fails_to_compile_is_started_with_less_of_it(
    tmp_path: Path, temporary: Path
) -> None:
    model = str(small_models(tmp_path, FAULTY) / "faulty")
    with running(model, "--json", temporary=temporary) as server:
        ready = json.loads(server.first_line)
        assert [one["step"] for one in ready["retreats"]] == ["no_triton"]
        status, answer = post(f"{ready['url']}:predict", {"instances": [[1.0, 2.0, 3.0]]})
        assert (status, answer["predictions"]) == (200, [[2.0, 4.0, 6.0]])
        said = [line for line in server.said if "XLA failed to compile" in line]
        assert len(said) == 1
        assert "it is started again without Triton's matrix products" in said[0]
    with running(model, "--json", "--no-retreat", temporary=temporary) as server:
        ready = json.loads(server.first_line)
        assert ready["retreats"] == []
        status, answer = post(f"{ready['url']}:predict", {"instances": [[1.0, 2.0, 3.0]]})
        assert status == 400  # the planted fault is an assertion
