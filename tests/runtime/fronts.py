"""Signatures, a model in this process, a real model process, and the front as a process."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tests.served import QUIET, serving_folder, serving_python

from tfdyno.core.messages.serve import (
    FrontCommand,
    ModelFacts,
    SignatureFacts,
    Tensor,
    VersionFacts,
)
from tfdyno.core.messages.wire import encode, fields_of
from tfdyno.serving.front.table import Signature, Table, read_signature, read_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfdyno.serving.front.wire import Arrays

EVENT_S = 20.0
ROOT = Path(__file__).parents[2]
WEIGHTS = np.array([[1, 0], [0, 2], [1, 1]], dtype=np.float32)


def tensor(name: str, dtype: str, *shape: int | None) -> Tensor:
    return Tensor(name=name, dtype=dtype, shape=shape)


LINEAR = SignatureFacts(
    triton_model="linear",
    batched=True,
    inputs=(tensor("x", "float32", None, 3),),
    outputs=(tensor("y", "float32", None, 2),),
)
PAIR = SignatureFacts(
    triton_model="pair",
    batched=True,
    inputs=(tensor("a", "float32", None, 2), tensor("b", "int32", None, 1)),
    outputs=(tensor("sum", "float32", None, 2), tensor("twice", "int32", None, 1)),
)
TEXT = SignatureFacts(
    triton_model="text",
    batched=True,
    inputs=(tensor("s", "string", None, 1),),
    outputs=(tensor("upper", "string", None, 1), tensor("raw_bytes", "string", None, 1)),
)
ALONE = SignatureFacts(
    triton_model="linear",
    batched=False,
    inputs=(tensor("x", "float32", 2, 3),),
    outputs=(tensor("y", "float32", None, 2),),
)
MIXING = replace(LINEAR, batched=False)
"""Any number of rows, but what tried the model found that each depends on the others."""


def at(port: int) -> str:
    return f"127.0.0.1:{port}"


def models(port: int = 1, *, name: str = "m", version: str = "3") -> dict[str, ModelFacts]:
    """The supervisor's table with one version of all the signatures."""
    signatures = {"serving_default": LINEAR, "pair": PAIR, "text": TEXT}
    entry = VersionFacts(address=at(port), signatures=signatures)
    return {name: ModelFacts(default=version, versions={version: entry})}


def table(port: int = 1) -> Table:
    return read_table(models(port))


def signature(facts: SignatureFacts) -> Signature:
    return read_signature(facts)


class Here:
    """The linear model in this process; ``gate`` holds its calls back until it is set."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.calls: list[int] = []
        self.error: Exception | None = None
        self.poison: float | None = None

    async def infer(self, parts: Sequence[Arrays], signature: Signature) -> Arrays:
        x = np.concatenate([part["x"] for part in parts])
        self.calls.append(len(x))
        await self.gate.wait()
        if self.error is not None and (self.poison is None or self.poison in x):
            raise self.error
        return {"y": x @ WEIGHTS}

    def close(self) -> None:
        pass


TOYS = """
import os
import sys
import numpy as np
from pytriton.triton import Triton, TritonConfig
from tfdyno.core.messages.serve import ServedBatching
from tfdyno.serving.model.binding import bind
from tfdyno.serving.model.saved import Signature, Tensor

W = np.array([[1, 0], [0, 2], [1, 1]], dtype=np.float32)

def linear(x):
    bad = x[(x == 666) | (x >= 70_000)].tolist()
    if bad:
        raise ValueError(f"InvalidArgumentError: {bad[0]!r} is not in the vocabulary")
    return {"y": x @ W}

def pair(a, b):
    return {"sum": a + b, "twice": 2 * b}

def text(s):
    upper = np.char.upper(s.astype(bytes))
    return {"upper": upper.astype(object), "raw_bytes": s}

def tensor(name, dtype, size):
    return Tensor(name=name, dtype=dtype, shape=(None, size))

def signature(function, inputs, outputs):
    return Signature(name=function.__name__, inputs=tuple(inputs), outputs=tuple(outputs),
                     call=lambda arrays: function(**arrays))

own = os.fdopen(os.dup(1), "w")  # Triton writes lines of its own, which may tear this one
os.dup2(2, 1)
port = int(sys.argv[1])
batching = ServedBatching(max_batch_size=64, max_delay_ms=0.0)
config = TritonConfig(
    id=f"toys{port}", http_address="127.0.0.1", grpc_address="127.0.0.1",
    metrics_address="127.0.0.1", http_port=port, grpc_port=port + 1, metrics_port=port + 2,
)
with Triton(config=config) as triton:
    for one in [
        signature(linear, [tensor("x", "float32", 3)], [tensor("y", "float32", 2)]),
        signature(pair, [tensor("a", "float32", 2), tensor("b", "int32", 1)],
                  [tensor("sum", "float32", 2), tensor("twice", "int32", 1)]),
        signature(text, [tensor("s", "bytes", 1)],
                  [tensor("upper", "bytes", 1), tensor("raw_bytes", "bytes", 1)]),
    ]:
        bind(triton, {one.name: one}, {}, one.name, batching)
    triton.run()
    own.write("ready\\n")
    own.flush()
    sys.stdin.read()
"""


@contextlib.contextmanager
def toys(port: int, temporary: Path) -> Iterator[subprocess.Popen[str]]:
    """A real Triton with the signatures' models on ``port`` and the two above it."""
    python = serving_python()
    library = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_config_var('LIBDIR'))"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    environment = {**os.environ, **QUIET, "LD_LIBRARY_PATH": library}
    environment["PYTHONPATH"] = str(ROOT / "src")
    # Triton's sockets need a short path, and its files must not stay in the cache of the user.
    with tempfile.TemporaryDirectory(prefix="toys", ignore_cleanup_errors=True) as cache:
        environment |= {"TMPDIR": cache, "XDG_CACHE_HOME": cache}
        with (temporary / "toys.log").open("w") as log:
            process = subprocess.Popen(
                [python, "-c", TOYS, str(port)], env=environment, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True,
            )  # fmt: skip
        assert process.stdin
        assert process.stdout
        try:
            if not any(line.strip() == "ready" for line in process.stdout):
                raise AssertionError((temporary / "toys.log").read_text()[-2000:])
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # its orderly end takes ten seconds
            process.wait()
            process.stdin.close()
            process.stdout.close()


class FrontProcess:
    """``python -m tfdyno.serving.front.child`` with what it says."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.port = self.grpc_port = 0
        self._events: queue.Queue[str] = queue.Queue()
        self.listening = threading.Thread(target=self._listen, daemon=True)
        self.listening.start()

    def say(self, **command: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(encode(command) + "\n")
        self.process.stdin.flush()

    def event(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._events.get(timeout=EVENT_S))
        return told

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._events.put(line)

    def serve(self, table: Mapping[str, ModelFacts]) -> None:
        self.say(**fields_of(FrontCommand(command="serve", id=7, models=table)))
        assert self.event() == {"event": "serving", "id": 7}

    def ask(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, JSON (or text) and headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, None if body is None else data, named)
            answer = connection.getresponse()
            text = answer.read()
            told = {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()
        with contextlib.suppress(ValueError):
            return answer.status, json.loads(text), told
        return answer.status, text, told

    def predict(self, body: object, **headers: str) -> tuple[int, Any]:
        return self.ask("POST", "/v1/models/m:predict", body, **headers)[:2]


@contextlib.contextmanager
def front(*, files: str = "", **settings: Any) -> Iterator[FrontProcess]:
    """The front on a free port, without models yet; ``files`` are options of ``ulimit``."""
    serving_folder()
    limited = ["sh", "-c", f'ulimit {files}; exec "$@"', "sh"] if files else []
    process = subprocess.Popen(
        [*limited, serving_python(), "-m", "tfdyno.serving.front.child"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    started = FrontProcess(process)
    said: list[str] = []
    assert process.stderr
    listening = threading.Thread(target=said.extend, args=(process.stderr,), daemon=True)
    listening.start()
    try:
        started.say(**{"port": 0, **settings})
        told = started.event()
        assert told["event"] == "listening", told
        started.port, started.grpc_port = told["port"], told["grpc_port"]
        yield started
    finally:
        assert process.stdin
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        listening.join(60)
        started.listening.join(60)
        assert process.stdout
        process.stdout.close()
        process.stderr.close()
    assert said == [], said
    assert process.returncode == 0
