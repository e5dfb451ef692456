"""The environment that models are served in, small models, and a server, for real tests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
OWN = ROOT / ".venv-serving"
"""Made by ``tfdyno serve --setup --folder .venv-serving``."""
START_S = 90.0
LINEAR = """
import sys
import tensorflow as tf

def linear(folder, *, bias, batch=None, mean=False):
    # y = x @ [[1, 0], [0, 2], [1, 1]] + bias
    module = tf.Module()
    module.w = tf.Variable([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    module.b = tf.Variable(float(bias))
    spec = tf.TensorSpec([batch, 3], tf.float32, name="x")
    def call(x):
        y = x @ module.w + module.b
        return {"y": tf.reduce_mean(y, axis=0) if mean else y}
    module.call = tf.function(call, input_signature=[spec])
    tf.saved_model.save(module, folder, signatures=module.call)

folder = sys.argv[1]
linear(folder + "/linear/1", bias=0)
linear(folder + "/second", bias=100)
linear(folder + "/third", bias=200)
linear(folder + "/fixed", bias=0, batch=2)
linear(folder + "/mean", bias=0, mean=True)
tf.saved_model.save(tf.Module(), folder + "/nameless")
"""
"""Its answers can be worked out by hand."""
FAULTY = """
import sys
import tensorflow as tf

# Fails as XLA did on a GPU, unless its process was started with XLA_FLAGS that leave Triton out.
module = tf.Module()
spec = tf.TensorSpec([None, 3], tf.float32, name="x")
said = "Failed to analyze the computation (Failed to compute symbolic tile for (d0) -> (d0))"

def call(x):
    lines = tf.data.TextLineDataset("/proc/self/environ")
    is_off = lines.reduce(False, lambda found, line: found | tf.strings.regex_full_match(
        line, "(?s).*xla_gpu_enable_triton_gemm=false.*"))
    with tf.control_dependencies([tf.debugging.Assert(is_off, [said])]):
        return {"y": x * 2.0}

module.call = tf.function(call, input_signature=[spec])
tf.saved_model.save(module, sys.argv[1] + "/faulty", signatures=module.call)
"""
MIXING = """
import sys
import tensorflow as tf

def saved(name, call, dtype):
    module = tf.Module()
    spec = tf.TensorSpec([None, 2], dtype, name="x")
    module.call = tf.function(call, input_signature=[spec])
    tf.saved_model.save(module, sys.argv[1] + "/" + name, signatures=module.call)

def centred(x):
    return {"y": x - tf.reduce_mean(x, axis=0)}

saved("repeated", lambda x: {"y": tf.repeat(x, x[:, 0], axis=0)}, tf.int32)
saved("centred", centred, tf.float32)
saved("kept", lambda x: {"y": tf.boolean_mask(x, x[:, 0] > 0)}, tf.float32)
"""
"""Models of which no two requests may go into one call."""
KERAS = """
import sys
import keras

@keras.saving.register_keras_serializable()
class Own(keras.layers.Layer):
    def call(self, x):
        return x + 1

folder = sys.argv[1]
ones = keras.Sequential([
    keras.Input((3,), name="x"), keras.layers.Dense(2, kernel_initializer="ones")
])
ones.save(folder + "/ones.keras")
keras.Sequential([keras.Input((3,)), Own()]).save(folder + "/own.keras")
doubled = keras.layers.Lambda(lambda x: x * 2)
keras.Sequential([keras.Input((3,)), doubled]).save(folder + "/lambda.keras")
"""


def serving_folder() -> Path:
    """Folder of the serving environment: ``$TFDYNO_SERVING``, else the repository's own.

    A test that asks is skipped where there is none, and says so.
    """
    named = os.environ.get("TFDYNO_SERVING")
    folder = Path(named) if named else OWN
    if not (folder / "bin" / "python").exists():
        pytest.skip(f"no serving environment in {folder}: tfdyno serve --setup --folder {folder}")
    return folder


def serving_python() -> str:
    """The interpreter of the serving environment; the test is skipped where there is none."""
    return str(serving_folder() / "bin" / "python")


def run_serving(source: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python source in the serving environment, with tfdyno at hand."""
    return subprocess.run(
        [serving_python(), "-c", source, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, **QUIET, "PYTHONPATH": str(ROOT / "src")},
    )


QUIET = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}


def small_models(folder: Path, source: str = LINEAR) -> Path:
    """Write small models into a folder: ``linear/1``, ``second``, ``fixed``, … as above."""
    done = run_serving(source, str(folder))
    assert done.returncode == 0, done.stderr
    return folder


class Server:
    """A ``tfdyno serve`` that runs, as its user sees it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.first_line = ""
        self.said: list[str] = []
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    def _listen(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.said.append(line.rstrip())

    @property
    def url(self) -> str:
        """Of the model."""
        return self.first_line.removeprefix("ready ")

    def wait_ready(self) -> None:
        """Until its line is there; fails with what it said when it ends before."""
        assert self.process.stdout
        self.first_line = self.process.stdout.readline().strip()
        if not self.first_line:
            self.process.wait(60)
            self._listening.join(60)
            pytest.fail(f"no ready line: {self.said}")

    def wait_said(self, words: str, timeout_s: float = START_S) -> None:
        """Until its standard error has a line with these words."""
        until_s = time.monotonic() + timeout_s
        while not any(words in line for line in self.said):
            assert time.monotonic() < until_s, self.said
            assert self.process.poll() is None, self.said
            time.sleep(0.05)

    def predict(self, rows: list[list[float]], timeout_s: float = 30.0) -> object:
        """The answer to ``instances``: a list of rows."""
        status, answer = post(f"{self.url}:predict", {"instances": rows}, timeout_s)
        assert status == 200, answer
        return answer["predictions"]

    def end(self, number: int = signal.SIGTERM) -> tuple[int, float]:
        """Send a signal and wait: exit code and seconds."""
        began_s = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(60)
        return code, time.monotonic() - began_s


def post(url: str, content: object, timeout_s: float = 30.0) -> tuple[int, Any]:
    """Status and JSON of a POST."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            text = error.read()
        with contextlib.suppress(ValueError):
            return error.code, json.loads(text)
        return error.code, text


@contextlib.contextmanager
def running(*words: str, temporary: Path) -> Iterator[Server]:
    """Run ``tfdyno serve`` on a free port until the block ends; all its temporary files go there.

    Args:
        words: Model and options.
        temporary: An empty folder.
    """
    serving = str(serving_folder())
    process = subprocess.Popen(
        [sys.executable, "-m", "tfdyno", "serve", *words, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **QUIET, "TFDYNO_SERVING": serving, "TMPDIR": str(temporary)},
        cwd=ROOT,
    )
    server = Server(process)
    try:
        server.wait_ready()
        yield server
    finally:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(60)
            process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()
        server._listening.join(60)
        assert process.stderr
        process.stderr.close()
