"""The servers that the serving benchmark compares: how each is started, and where it answers."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.catalog.offers import data_dir
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.messages.serve import ServeModel
from tfdyno.core.messages.wire import encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[1]
START_S = 180.0
END_S = 20.0
FASTAPI = ("fastapi>=0.115", "uvicorn[standard]>=0.34")
HIDDEN = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One of the servers."""

    id: str
    title: str


UNBATCHED = Kind(id="triton-unbatched", title="Triton by PyTriton, v2 route, batch 1")
NATIVE = Kind(id="triton", title="Triton by PyTriton, v2 route, batches to 64")
ROUTE = Kind(id="tfdyno-serve", title="tfdyno serve, TensorFlow Serving's route")
BASELINE = Kind(id="fastapi", title="FastAPI + SavedModel, one call at a time")
KINDS = (BASELINE, UNBATCHED, NATIVE, ROUTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A server that answers."""

    kind: Kind
    url: str
    pid: int


def serving_folder() -> Path:
    """The serving environment: ``$TFDYNO_SERVING``, else where ``serve --setup`` makes it.

    Raises:
        UsageError: There is none.
    """
    folder = Path(os.environ.get("TFDYNO_SERVING") or data_dir() / "serving")
    if not (folder / "bin" / "python").exists():
        raise UsageError(f"there is no serving environment in {folder}",
                         remedy="make it with 'tfdyno serve --setup'")  # fmt: skip
    return folder


def fastapi_python(folder: Path) -> str:
    """An interpreter with FastAPI beside all of the serving environment; made once in ``folder``.

    Raises:
        ToolError: FastAPI cannot be installed.
    """
    place = folder / "fastapi"
    python = place / "bin" / "python"
    if not (place / "made").exists():
        base = serving_folder()
        run([str(base / "bin" / "python"), "-m", "venv", str(place)], "making an environment")
        site = next((base / "lib").glob("python3*/site-packages"))
        own = next((place / "lib").glob("python3*/site-packages"))
        (own / "serving.pth").write_text(f"{site}\n")
        install = [str(python), "-m", "pip", "install", "--quiet", *FASTAPI]
        run(install, "installing FastAPI")
        (place / "made").touch()
    return str(python)


def run(words: Sequence[str], doing: str) -> None:
    """Run a command to its end; raises ``ToolError`` with its last line."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=_environment())
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise ToolError(f"{doing} failed", why=" ".join(last))


@contextlib.contextmanager
def running(kind: Kind, models: Path, folder: Path) -> Iterator[Running]:
    """Start a server of this kind with the model ``cnn``; it is ended with the block."""
    port = free_port()
    if kind is BASELINE:
        script = str(ROOT / "scripts" / "bench_serving_fastapi.py")
        words = [fastapi_python(folder), script, str(models / "cnn" / "1"), str(port)]
        with child(words, folder / f"{kind.id}.log") as process:
            url = f"http://127.0.0.1:{port}/v1/models/cnn"
            wait_until_ready(process, f"{url}/metadata")
            yield Running(kind=kind, url=url, pid=process.pid)
    elif kind is ROUTE:
        with served(models / "cnn", folder / f"{kind.id}.log") as found:
            yield found
    else:
        with _triton(kind, models, folder) as found:
            yield found


@contextlib.contextmanager
def served(model: Path, log: Path, *options: str) -> Iterator[Running]:
    """``tfdyno serve`` of a model, on a free port."""
    port = free_port()
    words = [sys.executable, "-m", "tfdyno", "serve", str(model), "--port", str(port), *options]
    with child(words, log) as process:
        url = f"http://127.0.0.1:{port}/v1/models/{model.name}"
        wait_until_ready(process, f"{url}/metadata")
        yield Running(kind=ROUTE, url=url, pid=process.pid)


@contextlib.contextmanager
def _triton(kind: Kind, models: Path, folder: Path) -> Iterator[Running]:
    """The model process of ``tfdyno serve`` without its front: Triton's own route."""
    address = f"127.0.0.1:{free_port()}"  # tfdyno serve itself gives it a socket
    with tempfile.TemporaryDirectory(prefix="tfdyno-bench-") as scratch:
        request = ServeModel(
            model=models / "cnn" / "1", name="cnn", address=address, scratch=Path(scratch),
            max_batch_size=1 if kind is UNBATCHED else 64, max_delay_ms=2.0,
        )  # fmt: skip
        words = [str(serving_folder() / "bin" / "python"), "-m", "tfdyno.serving.model.child"]
        with child(words, folder / f"{kind.id}.log", keep_input=True) as process:
            assert process.stdin
            process.stdin.write((encode(request) + "\n").encode())
            process.stdin.flush()
            url = f"http://{address}/v2/models/cnn"
            wait_until_ready(process, f"{url}/ready", log=folder / f"{kind.id}.log")
            yield Running(kind=kind, url=url, pid=process.pid)


@contextlib.contextmanager
def child(
    words: Sequence[str], log: Path, *, keep_input: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, asked to end with the block, then killed."""
    with log.open("ab") as file:
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE if keep_input else subprocess.DEVNULL, stdout=file,
            stderr=file, env=_environment(), start_new_session=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_S)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_until_ready(
    process: subprocess.Popen[bytes], url: str, *, log: Path | None = None
) -> None:
    """Until an address answers 200, and the log, where one is given, tells of ``ready``.

    Raises:
        ToolError: The process ended, or took too long.
    """
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s:
        if process.poll() is not None:
            raise ToolError(f"the server for {url} ended", why=f"exit code {process.returncode}")
        said = log is None or '"ready"' in log.read_text(errors="replace")
        with contextlib.suppress(OSError, urllib.error.URLError):
            if said and urllib.request.urlopen(url, timeout=5.0).status == 200:
                return
        time.sleep(0.25)
    raise ToolError(f"nothing answered at {url} for {START_S:.0f} s")


def free_port() -> int:
    """A port that nothing listened at a moment ago."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, **HIDDEN, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
