"""The process that gives a training to Ray Train and hears from its workers, a child of ``launch``.

It reads one line of JSON, the plan of ``render.launch.ray.ray_plan``, and speaks as ``tfdyno node
--events`` does: ``progress:`` lines with events of worker 0, and the lines of all as they are.
SIGTERM asks the workers to write a checkpoint and to end. Beside the workers of Ray themselves it
is the only process that imports Ray.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import Failure, TfdynoError, ToolError, UsageError, failure_of
from tfdyno.jobs.child.worker import PROGRESS
from tfdyno.jobs.launch._ray_board import Board
from tfdyno.jobs.launch._ray_failures import fatal_of
from tfdyno.jobs.launch.ray_worker import FLUSH_S, OF_RAY, work

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Module, Value
    from tfdyno.jobs.launch._ray_board import Said

CONNECT_S = 2.0
"""Between two tries to reach a cluster that is starting again."""
POLL_S = 0.5
"""How often Ray Train looks after its workers, which is every 2 s if nothing is said."""
WAITING_S = 15.0
"""The time after which it is told that Ray has no room for the workers yet."""
LONGEST_PLACE = 30
"""Characters of a folder for Ray's sockets, whose names may have 107."""
TOKEN = Path.home() / ".ray" / "auth_token"
CLUSTER_LOST = "lost"


def main() -> int:
    """Run the plan; the exit code of its end."""
    asked = json.loads(sys.stdin.readline())
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        with _connected(asked, stop) as ray:
            signal.signal(signal.SIGTERM, lambda *_: stop.set())  # Ray has set its own
            signal.signal(signal.SIGALRM, _leave)
            done = _trained(ray, asked, stop)
    except TfdynoError as error:
        _failed(failure_of(error))
        return error.exit_code
    except _Left:
        return 1
    except _Lost as error:
        _failed(replace(failure_of(error.args[0]), kind=CLUSTER_LOST))
        return 1
    if done is None:
        return 1
    _say({"event": "done", **done})
    return 0


class _Left(BaseException):
    """It was to end, and no worker was there that could have written a checkpoint."""


class _Lost(Exception):  # noqa: N818  (it is what happened)
    """The cluster does not answer any more."""


@contextlib.contextmanager
def _connected(asked: dict[str, Any], stop: threading.Event) -> Iterator[Any]:
    """Connect to Ray, as part of a running cluster or with one of its own on this machine."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would tell its makers of this run
    os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", str(POLL_S))
    os.environ["RAY_TRAIN_V2_ENABLED"] = "1"
    address = asked.get("address") or os.environ.get("RAY_ADDRESS", "")
    _set_token(address)
    try:
        import ray
        from ray.train.v2.api import data_parallel_trainer  # noqa: F401  (is it there?)
    except ImportError as error:
        what = f"Ray Train cannot be imported by {sys.executable}"
        raise UsageError(what, why=str(error), remedy="install tfdyno[ray]") from None
    common: dict[str, Any] = {"log_to_driver": False, "logging_level": "warning"}
    with contextlib.ExitStack() as stack:
        if address:
            _join(ray, address, asked.get("patience_s", 0.0), stop, common)
        else:
            _begin(ray, asked, stack.enter_context(_place()), common)
        stack.callback(ray.shutdown)
        yield ray


def _set_token(address: str) -> None:
    """Give messages of a Ray of its own a token of its own, those to a cluster the user's.

    Left alone, Ray would keep the first in the user's home, from where ``ray start`` takes it for
    every cluster, and it would not use one that is there to join a cluster. Ray reads the mode
    when it is imported.
    """
    if "RAY_AUTH_MODE" in os.environ:
        return
    if not address:
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    elif "RAY_AUTH_TOKEN" in os.environ or "RAY_AUTH_TOKEN_PATH" in os.environ or TOKEN.exists():
        os.environ["RAY_AUTH_MODE"] = "token"


def _join(
    ray: Module,
    address: str,
    patience_s: float,
    stop: threading.Event,
    common: dict[str, Any],
) -> None:
    """Join a cluster, which may take so long to be there again."""
    until_s = time.monotonic() + patience_s
    while True:
        try:
            ray.init(address=address, **common)
            return
        except (ConnectionError, RuntimeError, ValueError) as error:
            if time.monotonic() >= until_s:
                words = str(error).strip().splitlines() or [type(error).__name__]
                what = f"the Ray cluster at {address} cannot be reached"
                remedy = "start it, or check the address and RAY_AUTH_TOKEN"
                raise ToolError(what, why=words[0], remedy=remedy) from None
        if stop.wait(CONNECT_S):
            raise _Left


def _begin(ray: Module, asked: dict[str, Any], place: str, common: dict[str, Any]) -> None:
    """Start Ray here, on loopback, with room for all workers, as --on local has it."""
    needs, count = _needs(asked)
    cpus = max(os.cpu_count() or 1, count * needs.get("CPU", 1))
    ray.init(
        address="local", num_cpus=cpus, include_dashboard=False, _node_ip_address="127.0.0.1",
        _temp_dir=place, **common,
    )  # fmt: skip
    found = int(ray.cluster_resources().get("GPU", 0))
    if found < count * needs.get("GPU", 0):
        what = f"Ray finds {found} GPUs on this machine, and the plan needs {count * needs['GPU']}"
        remedy = "ask for fewer, or name a cluster with --with address=HOST:PORT"
        raise UsageError(what, remedy=remedy)


@contextlib.contextmanager
def _place() -> Iterator[str]:
    """Make a folder for the files of Ray on this machine, removed at the end."""
    given = os.environ.get("RAY_TMPDIR", "")
    root = given or tempfile.gettempdir()
    root = root if given or len(root) <= LONGEST_PLACE else "/tmp"
    place = tempfile.mkdtemp(prefix="tfdyno-ray-", dir=root)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _needs(asked: dict[str, Any]) -> tuple[dict[str, int], int]:
    """Return what a worker needs, and how many there are."""
    scaling = asked["scaling_config"]
    return scaling.get("resources_per_worker") or {"CPU": 1}, int(scaling["num_workers"])


def _trained(ray: Module, asked: dict[str, Any], stop: threading.Event) -> dict[str, Any] | None:
    """Let Ray Train run it; None where it was to end before anything had begun."""
    from ray.exceptions import RayError
    from ray.train import TrainingFailedError

    name = f"tfdyno-{secrets.token_hex(8)}"
    here = {ray._raylet.RAY_NODE_ID_KEY: ray.get_runtime_context().get_node_id()}
    board = ray.remote(num_cpus=0)(Board).options(name=name, label_selector=here).remote()
    trainer = _trainer(asked, name)
    try:
        with _Pump(ray, board, stop, asked):
            result = trainer.fit()
    except TrainingFailedError as error:
        if stop.is_set():
            return None
        raise fatal_of(error, asked["worker"]["purpose"]) from None
    except RayError as error:
        print(f"Ray: {error}", file=sys.stderr, flush=True)
        raise _Lost(ToolError("the Ray cluster does not answer any more")) from None
    return dict(result.return_value or {})


def _trainer(asked: dict[str, Any], board: str) -> Value:
    """Make Ray Train's trainer, which sets no TF_CONFIG and no Keras of its own."""
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    from tfdyno.jobs.launch._ray_attempts import Attempts

    run, worker = asked["run_config"], asked["worker"]
    restarts = run["failure_config"]["max_failures"]
    unset = [name for name in OF_RAY if name not in os.environ]
    return DataParallelTrainer(
        work,
        train_loop_config={"board": board, "worker": {**worker, "unset": unset}},
        scaling_config=ScalingConfig(**asked["scaling_config"]),
        run_config=RunConfig(
            name=run["name"],
            storage_path=run["storage_path"],
            failure_config=FailureConfig(max_failures=restarts),
            callbacks=[Attempts(board, worker["purpose"], restarts)],
        ),
    )


class _Pump:
    """Brings what the workers say to the terminal, and the wish to stop to them."""

    def __init__(
        self, ray: Module, board: Value, stop: threading.Event, asked: dict[str, Any]
    ) -> None:
        self._ray, self._board, self._stop = ray, board, stop
        self._asked = asked
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._due_s = time.monotonic() + WAITING_S

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            is_last = self._ended.wait(FLUSH_S)
            try:
                said, is_there = self._ray.get(self._board.take.remote(self._stop.is_set()))
            except Exception:  # ``fit`` tells what has become of Ray
                return
            for one in said:
                _pass_on(one)
            if is_last:
                return
            if self._stop.is_set() and not is_there:
                os.kill(os.getpid(), signal.SIGALRM)  # the main thread waits for Ray
                return
            self._tell_wait(is_there)

    def _tell_wait(self, is_there: bool) -> None:
        now_s = time.monotonic()
        if is_there:
            self._due_s = now_s + WAITING_S
        elif now_s >= self._due_s:
            self._due_s = math.inf
            print(_waiting(self._ray, self._asked), file=sys.stderr, flush=True)


def _waiting(ray: Module, asked: dict[str, Any]) -> str:
    """Return why no worker is there yet, in words."""
    needs, count = _needs(asked)
    all_of_it = ray.cluster_resources()
    short = [key for key, value in needs.items() if all_of_it.get(key, 0) < count * value]
    if not short:
        return "Ray starts its workers."
    wanted = " and ".join(f"{count * needs[key]:g} {key}" for key in short)
    found = " and ".join(f"{all_of_it.get(key, 0):g} {key}" for key in short)
    return f"Ray waits for nodes to join: the plan needs {wanted}, and the cluster has {found}."


def _pass_on(said: Said) -> None:
    if said.kind == "output":
        print(said.text, file=sys.stderr, flush=True)
    elif said.kind == "progress":
        print(f"{PROGRESS}{said.text}\n", end="", file=sys.stderr, flush=True)
    elif said.kind == "started":
        _say({"event": "started", "rank": said.rank, **json.loads(said.text)})
    elif said.kind == "restart":
        _say({"event": "restart", "failure": said.text})


def _leave(*_: object) -> None:
    raise _Left


def _failed(failure: Failure) -> None:
    _say({"event": "failed", "error": asdict(failure)})


def _say(event: dict[str, Any]) -> None:
    print(f"{PROGRESS}{json.dumps(event)}\n", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
