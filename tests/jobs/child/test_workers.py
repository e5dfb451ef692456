"""Several children as one job, with real processes that work, fail, hang and are stopped."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.jobs import cluster_child

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.messages.child import Child
from tfdyno.engines.process.process import ChildCrash
from tfdyno.engines.rendezvous.tf_config import (
    Task,
    free_ports,
    multiworker,
    one_card_each,
    parameter_server,
)
from tfdyno.jobs.child import workers as _workers
from tfdyno.jobs.child.workers import run_children

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = str(Path(__file__).parents[3])
SRC = str(Path(__file__).parents[3] / "src")
CHILD = """
import ctypes, json, os, pathlib, signal, socket, subprocess, sys, time
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.messages.child import Child
from tfdyno.process import child

def handle(request, progress):
    config = json.loads(os.environ["TF_CONFIG"])
    task = config["task"]
    me = f"{task['type']}-{task['index']}"
    here = pathlib.Path(request["folder"])
    (here / f"{me}.pid.part").write_text(str(os.getpid()))
    (here / f"{me}.pid.part").rename(here / f"{me}.pid")
    names = {**globals(), **locals(), "answer": {}}
    exec(request["do"], names)
    return {"me": me, **names["answer"]}

child.leave(child.serve(handle, Child(module="kid", request=dict, result=dict)))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    folder: Path
    do: str


KID: Child[Order, dict[str, Any]] = Child(module="kid", request=Order, result=dict)
WAIT = "time.sleep(60)"
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN); progress('deaf'); time.sleep(60)"
SAVES = """
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(True))
progress('ready')
(here / f'{me}.ready').touch()
while not told:
    time.sleep(0.02)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "kid.py").write_text(CHILD)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), SRC)))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(_workers, "END_S", 1.0)
    yield tmp_path
    assert not list((tmp_path / "tmp").glob("tfdyno-*"))
    assert all(is_gone(pid) for pid in pids(tmp_path))


def run(folder: Path, roles: tuple[Task, ...], *bodies: str, **options: Any) -> dict[str, Any]:
    requests = [Order(folder=folder, do=body) for body in bodies]
    given = {"timeout_s": 30.0, "logs": folder / "logs", "doing": "training train.py", **options}
    return run_children(KID, requests, roles, **given)


def pids(folder: Path) -> list[int]:
    return [int(path.read_text()) for path in folder.glob("*.pid")]


def is_gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if is_zombie(pid):
            return True
        time.sleep(0.05)
    return False


def is_zombie(pid: int) -> bool:
    """Whether it has ended and only its parent does not know yet."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] == "Z"


def when(ready: list[Path], action: Callable[[], object]) -> threading.Thread:
    """Do something from outside as soon as the files are there."""

    def wait() -> None:
        until_s = time.monotonic() + 60
        while not all(path.exists() for path in ready) and time.monotonic() < until_s:
            time.sleep(0.02)
        action()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_each_has_its_own_place_in_one_cluster_and_the_chief_answers(folder: Path) -> None:
    body = (
        "progress(f'{me} works'); print('noise of', me); answer['config'] = config;"
        "answer['gpu'] = os.environ['CUDA_VISIBLE_DEVICES'];"
        "(here / f'{me}.json').write_text(json.dumps(config));"
        "(here / f'{me}.gpu').write_text(answer['gpu'])"
    )
    said: list[str] = []
    printed: list[str] = []
    started: list[int] = []
    roles = multiworker(2)
    result = run(
        folder, roles, body, body,
        progress=said.append, output=printed.append, started=started.append,
        hide_gpu=False, cards=one_card_each(roles, ["0", "GPU-7"]),
    )  # fmt: skip
    other = json.loads((folder / "worker-1.json").read_text())
    assert result["me"] == "worker-0"
    assert result["config"]["cluster"] == other["cluster"]
    assert len(set(other["cluster"]["worker"])) == 2
    assert other["task"] == {"type": "worker", "index": 1}
    assert (result["gpu"], (folder / "worker-1.gpu").read_text()) == ("0", "GPU-7")
    assert said == ["worker-0 works"]
    assert sorted(printed) == ["[worker 0] noise of worker-0", "[worker 1] noise of worker-1"]
    assert sorted(started) == sorted(pids(folder))
    log = (folder / "logs" / "worker-1.log").read_text()
    assert "training train.py as worker 1\nnoise of worker-1\n" in log


def test_the_first_that_fails_ends_all_and_is_named_with_its_last_lines(folder: Path) -> None:
    ready = "progress('up'); (here / f'{me}.up').touch();"
    fail = (
        "while not (here / 'worker-0.up').exists(): time.sleep(0.02)\n"
        "print('before'); 1 / 0"
    )  # fmt: skip
    began_s = time.monotonic()
    with pytest.raises(ChildCrash) as caught:
        run(folder, multiworker(3), ready + DEAF, fail, ready + WAIT)
    assert time.monotonic() - began_s < 45
    sentence = str(caught.value)
    assert sentence.startswith("training train.py failed in worker 1: the process ended with exit")
    assert "ZeroDivisionError: division by zero" in sentence
    assert "its last lines were" in sentence
    log = folder / "logs" / "worker-1.log"
    assert caught.value.__notes__ == [f"Its log is {log}."]
    assert "before" in log.read_text()


def test_one_that_only_lost_another_is_not_blamed(folder: Path) -> None:
    echo = (
        "while not (here / 'worker-1.pid').exists(): time.sleep(0.01)\n"
        "raise ToolError('the step failed', why='UNAVAILABLE: Connection reset by peer')"
    )
    own = "time.sleep(1.0); raise UsageError('the dataset is empty', remedy='give it rows')"
    with pytest.raises(UsageError) as caught:
        run(folder, multiworker(2), echo, own)
    assert str(caught.value) == "worker 1: the dataset is empty; give it rows."
    assert not isinstance(caught.value, ChildCrash)


def test_a_killed_worker_is_named_though_its_peer_fails_at_the_same_time(folder: Path) -> None:
    kill = "progress('up'); time.sleep(0.3); os.kill(os.getpid(), signal.SIGKILL)"
    watch = (
        "while not (here / 'worker-1.pid').exists(): time.sleep(0.001)\n"
        "pid = int((here / 'worker-1.pid').read_text())\n"
        "while pathlib.Path(f'/proc/{pid}').exists() and "
        "pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z':\n"
        "    time.sleep(0.001)\n"
        "sys.stderr.write('UNAVAILABLE: Socket closed\\n'); os._exit(1)"
    )
    with pytest.raises(ChildCrash, match="failed in worker 1: it was killed by SIGKILL"):
        run(folder, multiworker(2), watch, kill)


def test_a_worker_that_hangs_is_blamed_by_those_who_lost_it(folder: Path) -> None:
    echo = (
        "raise ToolError('the step failed', why='UNAVAILABLE: tasks are unhealthy (stopped "
        "sending heartbeats): /job:worker/replica:0/task:1')"
    )
    with pytest.raises(ToolError) as caught:
        run(folder, multiworker(2), echo, WAIT)
    assert str(caught.value).startswith(
        "worker 1 of training train.py does not answer any more: it still ran, but worker 0 lost it"
    )
    logs = folder / "logs"
    assert caught.value.__notes__ == [
        f"The log of worker {rank} is {logs / f'worker-{rank}.log'}." for rank in (1, 0)
    ]


def test_servers_are_ended_when_the_chief_is_done(folder: Path) -> None:
    serve = "progress('up'); (here / f'{me}.up').touch(); time.sleep(60)"
    chief = "while len(list(here.glob('*.up'))) < 3: time.sleep(0.02)\nanswer['config'] = config"
    began_s = time.monotonic()
    result = run(folder, parameter_server(), chief, serve, serve, serve.replace("time", DEAF, 1))
    assert result["me"] == "chief-0"
    assert sorted(result["config"]["cluster"]) == ["chief", "ps", "worker"]
    assert len(pids(folder)) == 4
    assert time.monotonic() - began_s < 45


def test_a_server_that_ends_too_early_ends_the_run(folder: Path) -> None:
    with pytest.raises(ToolError) as caught:
        run(folder, parameter_server(1, 1), WAIT, WAIT, "pass")
    assert str(caught.value) == (
        "parameter server 0 of training train.py ended too early: the others still needed it."
    )


def test_a_worker_that_never_appears_is_named(folder: Path) -> None:
    with pytest.raises(ToolError) as caught:
        run(folder, multiworker(2), "progress('up');" + WAIT, "print('hm');" + WAIT,
            start_timeout_s=8.0)  # fmt: skip
    assert str(caught.value) == (
        "worker 1 of training train.py is missing: no sign of life within 8 s, its last line was "
        "'hm'; start fewer processes, or look whether this machine is overloaded."
    )


def test_all_are_ended_when_the_time_is_over(folder: Path) -> None:
    with pytest.raises(ChildCrash, match=r"training train\.py was stopped: no result within 1 s"):
        run(folder, multiworker(2), WAIT, WAIT, timeout_s=1.0)


def test_ctrl_c_lets_all_save_and_gives_the_chiefs_result(folder: Path) -> None:
    chief = SAVES + "time.sleep(0.3); assert (here / 'ps-0.pid').exists()\n"
    chief += "os.kill(int((here / 'ps-0.pid').read_text()), 0); answer['resume'] = 'so'"
    ready = [folder / "chief-0.ready", folder / "ps-0.pid", folder / "worker-0.pid"]
    thread = when(ready, interrupt)
    printed: list[str] = []
    result = run(folder, parameter_server(1, 1), chief, WAIT, WAIT, stop_grace_s=20.0,
                 output=printed.append)  # fmt: skip
    assert printed == [
        "training train.py is asked to end and has 20 s for it; a second Ctrl-C ends it at once"
    ]
    thread.join()
    assert result == {"me": "chief-0", "resume": "so"}


def test_ctrl_c_reaches_every_worker(folder: Path) -> None:
    save = SAVES + "(here / f'{me}.saved').touch()"
    thread = when([folder / f"worker-{i}.ready" for i in (0, 1)], interrupt)
    run(folder, multiworker(2), save, save, stop_grace_s=20.0)
    thread.join()
    assert (folder / "worker-0.saved").exists()
    assert (folder / "worker-1.saved").exists()


def test_a_second_ctrl_c_kills_at_once(folder: Path) -> None:
    deaf = DEAF.replace("progress('deaf')", "(here / f'{me}.ready').touch()")

    def twice() -> None:
        interrupt()
        time.sleep(0.5)
        interrupt()

    thread = when([folder / f"worker-{i}.ready" for i in (0, 1)], twice)
    began_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(folder, multiworker(2), deaf, deaf, stop_grace_s=50.0)
    thread.join()
    assert time.monotonic() - began_s < 45


def test_a_stop_that_nobody_answers_says_so(folder: Path) -> None:
    deaf = DEAF.replace("progress('deaf')", "(here / f'{me}.ready').touch()")
    thread = when([folder / f"worker-{i}.ready" for i in (0, 1)], interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(folder, multiworker(2), deaf, deaf, stop_grace_s=1.0)
    thread.join()
    assert caught.value.__notes__ == ["training train.py did not end within 1 s and was killed."]


def test_nothing_is_left_when_this_program_is_killed(folder: Path) -> None:
    # As TensorFlow does while it waits for the others of a cluster: no other thread of Python
    # runs. And a process that the user's code has started watches nothing.
    start = "kid = subprocess.Popen(['sleep', '60']); (here / f'{me}-kid.pid').write_text("
    stuck = start + "str(kid.pid)); ctypes.PyDLL(None).sleep(60)"
    code = (
        "from pathlib import Path; from tfdyno.jobs.child.workers import run_children; "
        "from tfdyno.engines.rendezvous.tf_config import multiworker; "
        "from tfdyno.core.messages.child import Child; "
        "import dataclasses; order = dataclasses.make_dataclass('Order', ['folder', 'do']); "
        "kid = Child(module='kid', request=order, result=dict); "
        f"requests = [order({str(folder)!r}, {stuck!r})] * 2; "
        "run_children(kid, requests, multiworker(2), timeout_s=60, "
        f"logs=Path({str(folder)!r}) / 'logs')"
    )
    files = [folder / f"worker-{i}{kid}.pid" for i in (0, 1) for kid in ("", "-kid")]
    with subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(folder)}
    ) as parent:
        when(files, lambda: time.sleep(0.3)).join()
        parent.kill()
    assert len(pids(folder)) == 4
    assert all(is_gone(pid) for pid in pids(folder))


BINDS = """
port = int(config["cluster"]["worker"][task["index"]].rpartition(":")[2])
with socket.socket() as server:
    server.bind(("", port))
    answer["port"] = port
(here / f"{me}.bound").touch()
while not (here / "worker-1.bound").exists():  # as a chief waits for the others
    time.sleep(0.02)
"""


def test_a_port_that_is_taken_is_tried_again_and_then_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[str] = []
    free = free_ports
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        taken = other.getsockname()[1]
        answers = iter([(free(1)[0], taken)])
        monkeypatch.setattr(_workers, "free_ports", lambda n: next(answers, None) or free(n))
        result = run(folder, multiworker(2), BINDS, BINDS, output=printed.append)
        assert result["port"] != taken
        again = f"port {taken} of worker 1 is taken: starting again with other ports"
        assert again in printed
        (folder / "worker-1.bound").unlink()
        monkeypatch.setattr(_workers, "free_ports", lambda _n: (free(1)[0], taken))
        with pytest.raises(ToolError) as caught:
            run(folder, multiworker(2), BINDS, BINDS)
    assert str(caught.value).startswith(f"port {taken} of worker 1 is taken: TF_CONFIG gave it")
    assert "Address already in use" in str(caught.value)


def test_a_log_that_cannot_be_written_is_told_before_anything_runs(folder: Path) -> None:
    (folder / "logs").write_text("a file")
    with pytest.raises(ToolError, match=r"cannot write .*worker-0\.log"):
        run(folder, multiworker(2), WAIT, WAIT)


def test_requests_and_roles_must_fit(folder: Path) -> None:
    with pytest.raises(UsageError, match="2 processes cannot share 1 requests"):
        run(folder, multiworker(2), WAIT)


# CI starts real clusters through trainings (test_train.py) and cells (test_composition.py).
@pytest.mark.slow
@pytest.mark.tf
def test_two_real_workers_add_up_their_numbers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((ROOT, SRC)))
    progress: list[str] = []
    logs = folder / "logs"
    result = run_children(
        cluster_child.CLUSTER, [cluster_child.Act(do="all-reduce")] * 2, multiworker(2),
        timeout_s=240.0, logs=logs, progress=progress.append, start_timeout_s=120.0,
    )  # fmt: skip
    assert result == {"sum": [3.0] * 4, "replicas": 2, "told": [signal.SIGTERM]}
    assert progress == ["importing TensorFlow", "the cluster stands"]
    for rank in (0, 1):
        assert f"rank {rank} has 3.0\n" in (logs / f"worker-{rank}.log").read_text()


@pytest.mark.slow
@pytest.mark.tf
def test_a_real_chief_gives_a_step_to_a_worker_and_ends_the_servers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((ROOT, SRC)))
    started: list[int] = []
    result = run_children(
        cluster_child.CLUSTER, [cluster_child.Act(do="schedule")] * 4, parameter_server(),
        timeout_s=240.0, logs=folder / "logs", started=started.append,
    )  # fmt: skip
    assert result["value"] == 42.0
    assert "/job:ps/" in result["device"]
    assert len(started) == 4
    assert all(is_gone(pid) for pid in started)
