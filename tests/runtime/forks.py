"""Code in a process that has TensorFlow: forked from one that imported it, which takes seconds.

One such process serves all tests of a worker. It has imported TensorFlow and Keras and used
neither, so each fork chooses devices and threads for itself.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.messages.wire import encode

if TYPE_CHECKING:
    from tfdyno.core.messages.child import Asked, Child

NO_GPU = {"CUDA_VISIBLE_DEVICES": "-1"}
SERVER = """
import json, os, sys, traceback
import keras, numpy, tensorflow

def run(code, words, folder, said, environment):
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    files = os.open(os.devnull, os.O_RDONLY), *(os.open(name, os.O_WRONLY) for name in said)
    for number, file in enumerate(files):
        os.dup2(file, number)
    numpy.random.seed()  # or every fork would draw the same
    sys.argv = words
    status = 1
    try:
        exec(compile(code, "<string>", "exec"), globals())
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)

for line in sys.stdin:
    request = json.loads(line)
    if not (pid := os.fork()):
        run(**request)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
HANDLED = """
import importlib, json, sys
from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.messages.wire import decode, encode

_, module, place, kind, request, result = sys.argv
request = decode(json.loads(request), getattr(importlib.import_module(place), kind))
said = []
try:
    answer = json.loads(encode(importlib.import_module(module).handle(request, said.append)))
    outcome = {**(answer if isinstance(answer, dict) else {"answer": answer}), "said": said}
except TfdynoError as error:
    outcome = {"refused": str(error), "exit_code": error.exit_code}
with open(result, "w") as file:
    file.write(encode(outcome))
"""


def forked(code: str, *words: str, folder: Path | None = None) -> str:
    """What ``code`` prints, run as ``python -c`` does with TensorFlow and Keras imported."""
    with tempfile.TemporaryDirectory() as name:
        said = [Path(name, each) for each in ("stdout", "stderr")]
        for path in said:
            path.touch()
        request = {
            "code": code, "words": ["-c", *words], "folder": str(folder or Path.cwd()),
            "said": [str(path) for path in said], "environment": _environment(),
        }  # fmt: skip
        if _server().poll() is not None:  # one that was killed shall not fail all that follow
            _server.cache_clear()
        server = _server()
        assert server.stdin
        assert server.stdout
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        status = server.stdout.readline().strip()
        out, err = (path.read_text() for path in said)
    assert status == "0", f"exit code {status or server.wait()}: {err[-6000:]}"
    return out


def handled(child: Child[Asked, Any], request: Asked, folder: Path) -> dict[str, Any]:
    """What a child of ``tfdyno.runtime`` answers, with what it printed; or how it refuses.

    Args:
        child: Its declaration.
        request: What it is asked.
        folder: That it works in.

    Returns:
        The answer as JSON has it; one that has no names under ``answer``.
    """
    kind, result = type(request), folder / "result.json"
    words = (child.module, kind.__module__, kind.__name__, encode(request), str(result))
    printed = forked(HANDLED, *words, folder=folder)
    found: dict[str, Any] = json.loads(result.read_text())
    return found | {"printed": printed}


@functools.cache
def _server() -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], env=_environment(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    atexit.register(server.communicate)  # the end of its input is its end
    return server


def _environment() -> dict[str, str]:
    return {**os.environ, "KERAS_BACKEND": "tensorflow", **NO_GPU}
