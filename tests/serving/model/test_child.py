"""The process of one version, by the protocol that the supervisor speaks with it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from tests.served import QUIET, ROOT, serving_python, small_models

from tfdyno.serving import address as serve_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Value

pytestmark = [pytest.mark.tf, pytest.mark.slow]
START_S = 120.0
DELAY_S = 20.0


class Served:
    """A model process that runs, and what it said first."""

    def __init__(self, model: Path, scratch: Path, **settings: object) -> None:
        self.scratch = scratch
        self.process = subprocess.Popen(
            [serving_python(), "-m", "tfdyno.serving.model.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **QUIET, "PYTHONPATH": str(ROOT / "src")},
            start_new_session=True,
        )
        request = {
            "model": str(model), "name": "linear", "scratch": str(scratch),
            "max_batch_size": 8, "max_delay_ms": DELAY_S * 1e3,
            "address": f"unix:{scratch / 'http'}", **settings,
        }  # fmt: skip
        assert self.process.stdin
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        late = threading.Timer(START_S, self.process.kill)
        late.start()
        assert self.process.stdout
        self.event: dict[str, Any] = json.loads(self.process.stdout.readline() or "{}")
        late.cancel()

    def infer(self, rows: list[list[float]]) -> list[float]:
        data = [value for row in rows for value in row]
        tensor = {"name": "x", "shape": [len(rows), 3], "datatype": "FP32", "data": data}
        answer = self._ask("POST", "infer", json.dumps({"inputs": [tensor]}))
        found: list[float] = answer["outputs"][0]["data"]
        return found

    def calls(self) -> int:
        """How often the model was called."""
        counted: int = self._ask("GET", "stats")["model_stats"][0]["execution_count"]
        return counted

    def _ask(self, method: str, what: str, body: str | None = None) -> Value:
        connection = serve_address.connection(self.event["address"], timeout_s=30.0)
        try:
            connection.request(method, f"/v2/models/linear/{what}", body)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        assert answer.status == 200, text
        return json.loads(text)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            pipe.close()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as folder:
        (Path(folder) / "s").mkdir()
        yield Path(folder) / "s"


def test_requests_that_arrive_together_are_one_call_and_get_their_own_rows(
    models: Path, scratch: Path
) -> None:
    served = Served(models / "linear" / "1", scratch)
    try:
        assert served.event["event"] == "ready"
        signature = served.event["signatures"]["serving_default"]
        assert signature["triton_model"] == "linear"
        assert signature["inputs"] == [{"name": "x", "dtype": "float32", "shape": [None, 3]}]
        assert served.event["batching"]["unbatched"] == {}
        before = served.calls()
        answers: dict[int, list[float]] = {}

        def ask(number: int) -> None:
            for _ in range(20):
                answers[number] = served.infer([[number, 1, 0]])

        # Triton waits for nobody (the front does): while one call runs, the others gather.
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        # y = x @ [[1, 0], [0, 2], [1, 1]]
        assert answers == {number: [number, 2.0] for number in range(8)}
        assert served.calls() - before < 8 * 20
        began_s = time.monotonic()
        served.infer([[1, 1, 0]])
        assert time.monotonic() - began_s < DELAY_S  # alone it is not held back
        everyone = [psutil.Process(served.process.pid)]
        everyone += everyone[0].children(recursive=True)
        ports = [one for each in everyone for one in each.net_connections("inet")]
        assert ports == []  # every user of the machine could ask there
        shared = list(Path("/dev/shm").glob(f"pytrtion{served.process.pid}-*"))
        assert shared
        assert {one.stat().st_mode & 0o077 for one in shared} == {0}
        children = psutil.Process(served.process.pid).children(recursive=True)
        served.process.terminate()
        assert served.process.wait(60) == 0
        assert not psutil.wait_procs(children, timeout=60)[1]
        assert not scratch.exists()
    finally:
        served.close()


def other_folder(scratch: Path, name: str) -> Path:
    folder = scratch.with_name(name)
    folder.mkdir()
    return folder


def test_what_is_known_of_a_model_lets_triton_start_while_it_is_loaded(
    models: Path, scratch: Path
) -> None:
    first = Served(models / "linear" / "1", scratch)
    first.close()
    known = {key: first.event[key] for key in ("signatures", "batching")}
    again = Served(models / "second", other_folder(scratch, "2"), known=known)
    try:
        assert again.event["event"] == "ready", again.event
        for facts in (first.event, again.event):  # it was called before anyone could ask
            assert 0.0 < facts["signatures"]["serving_default"].pop("call_s") < DELAY_S
        assert {key: again.event[key] for key in known} == known
        assert again.infer([[1, 2, 3]]) == [104.0, 107.0]
    finally:
        again.close()
    known["signatures"]["serving_default"]["outputs"][0]["dtype"] = "int32"
    other = Served(models / "linear" / "1", other_folder(scratch, "3"), known=known)
    try:
        assert (other.event["event"], other.event["kind"]) == ("failed", "tool")
        assert "another than before" in other.event["what"]
        assert other.process.wait(60) == 3
    finally:
        other.close()


def test_the_end_of_standard_input_ends_it(models: Path, scratch: Path) -> None:
    served = Served(models / "fixed", scratch, max_batch_size=1)
    try:
        assert served.event["batching"]["unbatched"] == {
            "serving_default": "x is fixed to a batch of 2"
        }
        assert served.infer([[1, 2, 3], [0, 0, 1]]) == [4.0, 7.0, 1.0, 1.0]
        assert served.process.stdin
        served.process.stdin.close()
        assert served.process.wait(60) == 0
    finally:
        served.close()


def test_a_model_that_cannot_be_served_is_an_event_and_exit_code_two(
    models: Path, scratch: Path
) -> None:
    served = Served(models / "nameless", scratch)
    try:
        assert (served.event["event"], served.event["kind"]) == ("failed", "usage")
        assert "has no signature" in served.event["what"]
        assert served.process.wait(60) == 2
        assert not scratch.exists()
    finally:
        served.close()
