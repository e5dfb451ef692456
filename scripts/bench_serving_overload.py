"""Ten times too much load, and a killed worker: what the server does, and after how long."""

from __future__ import annotations

import contextlib
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import psutil

from bench_serving_servers import served
from tfdyno.core.base.errors import ToolError
from tfdyno.core.measure.load import ACCEPTED, CODE_WORDS
from tfdyno.jobs.bench.load import LoadRequest, load_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tfdyno.core.measure.load import LoadResult

OVERLOAD = 10.0
CLIENTS = 16
KILL_SHARE = 0.3
"""Of what the server can do: a client that is refused and asks again at once would take the CPU
that the new worker needs to start."""
SLO_S = 0.25
CAPACITY_S, KILL_LOAD_S, KILL_AT_S = 8.0, 30.0, 8.0
GOOD_IN_A_ROW = 20
RECOVERY_LIMIT_S = 30.0
PAUSE_S = 0.05
WORKER = "tfdyno.serving.model.child"
TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overload:
    """What ten times too much load did."""

    slo_s: float
    options: tuple[str, ...]
    """Of ``tfdyno serve``."""
    capacity_per_s: float
    """With clients that wait."""
    offered_per_s: float
    seconds_s: float
    accepted_per_s: float
    p99_s: float
    codes: dict[str, int]
    memory_bytes: tuple[float, ...]
    """Of all processes of the server, once a second."""
    recovery_s: float
    """From the end of the load to the first of ``GOOD_IN_A_ROW`` answers in a row within the
    promise; -1: not within ``RECOVERY_LIMIT_S``."""
    client_late_s: float
    """How late the client's own loop was, 99 times in 100 less: latencies hold that."""
    client_cpu_ratio: float

    @property
    def growth_ratio(self) -> float:
        """Memory in the last quarter of the load over that in the second."""
        count = len(self.memory_bytes) // 4
        if not count:
            return 1.0
        second = sum(self.memory_bytes[count : 2 * count]) / count
        return sum(self.memory_bytes[-count:]) / count / second


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """What a killed worker did."""

    offered_per_s: float
    gap_s: float
    """From the kill to the first good answer to a request begun after it; -1: there was none."""
    codes: dict[str, int]
    slowest_s: float
    """The slowest answer of any kind."""
    after_per_s: float
    """Good answers a second at the end."""
    before_per_s: float


def overload(
    model: Path, folder: Path, *, seconds_s: float, say: Callable[[str], None]
) -> Overload:
    """Start ``tfdyno serve`` with a promise, find what it can do, and offer ten times as much."""
    queue = max(8, round(SLO_S * _capacity_guess(model, folder, say)))
    options = ("--p99-ms", f"{SLO_S * 1e3:g}", "--max-queue", str(queue))
    with served(model, folder / "overload.log", *options) as server:
        # As many clients as work and wait inside the promise: more would be refused.
        clients = max(2, queue // 2)
        one = LoadRequest(url=server.url, clients=clients, seconds_s=CAPACITY_S,
                           allow_refusals=True, timeout_s=TIMEOUT_S)  # fmt: skip
        say(f"overload: capacity with {clients} clients")
        capacity = load_test(one).stages[0].figures.accepted_per_s
        if capacity <= 0.0:
            raise ToolError("the server accepted nothing", why="its capacity is unknown")
        rate = OVERLOAD * capacity
        say(f"overload: {rate:.0f} requests/s for {seconds_s:.0f} s")
        flood = replace(one, rates_per_s=(rate,), seconds_s=seconds_s)
        with memory_of(server.pid) as memory:
            found = load_test(flood)
        recovery_s = _recovery_s(server.url)
    stage = found.stages[0]
    p99 = stage.figures.p99_s
    return Overload(
        slo_s=SLO_S,
        options=options,
        capacity_per_s=capacity,
        offered_per_s=rate,
        seconds_s=seconds_s,
        accepted_per_s=stage.figures.accepted_per_s,
        p99_s=p99.best if p99 else float("inf"),
        codes=codes_of(found),
        memory_bytes=tuple(memory),
        recovery_s=recovery_s,
        client_late_s=stage.run.lag_p99_s,
        client_cpu_ratio=stage.figures.client_cpu_ratio,
    )


def kill(model: Path, folder: Path, say: Callable[[str], None]) -> Kill:
    """Load ``tfdyno serve`` and kill its model process on the way."""
    with served(model, folder / "kill.log") as server:
        closed = LoadRequest(url=server.url, clients=CLIENTS, seconds_s=CAPACITY_S / 2)
        rate = KILL_SHARE * load_test(closed).stages[0].figures.accepted_per_s
        question = LoadRequest(url=server.url, rates_per_s=(rate,), seconds_s=KILL_LOAD_S,
                                allow_refusals=True, timeout_s=TIMEOUT_S)  # fmt: skip
        say(f"kill: {rate:.0f} requests/s for {KILL_LOAD_S:.0f} s")
        killed: list[float] = []
        timer = threading.Timer(KILL_AT_S, lambda: killed.append(_kill_worker(server.pid)))
        timer.start()
        found = load_test(question)
        timer.join()
    return _kill_answer(found, killed[0], rate)


def codes_of(found: LoadResult) -> dict[str, int]:
    """Every code -> requests, the warm-up included."""
    codes = Counter(code for one in found.stages for code in one.run.codes)
    return {CODE_WORDS.get(code, str(code)): count for code, count in sorted(codes.items())}


@contextlib.contextmanager
def memory_of(pid: int) -> Iterator[list[float]]:
    """Memory of a process and all below it, once a second, in the list that is given."""
    found: list[float] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(1.0):
            found.append(sum(_memory_bytes(one) for one in tree(pid)))

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield found
    finally:
        over.set()
        watching.join()


def tree(pid: int) -> list[psutil.Process]:
    """A process and all that it started."""
    try:
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    except psutil.Error:
        return []


def _memory_bytes(one: psutil.Process) -> float:
    try:
        return float(one.memory_info().rss)
    except psutil.Error:
        return 0.0


def _capacity_guess(model: Path, folder: Path, say: Callable[[str], None]) -> float:
    """What the server does with batching as it comes: the queue is made as long as the promise."""
    with served(model, folder / "overload.log") as server:
        say("overload: what the server can do without limits")
        question = LoadRequest(url=server.url, clients=64, seconds_s=CAPACITY_S)
        return load_test(question).stages[0].figures.accepted_per_s


def _recovery_s(url: str) -> float:
    """See ``Overload.recovery_s``: one request after the other."""
    body = b'{"instances":[' + _picture() + b"]}"
    began_s = time.monotonic()
    first_s, row = began_s, 0
    while time.monotonic() - began_s < RECOVERY_LIMIT_S:
        at_s = time.monotonic()
        if _is_good(url, body) and time.monotonic() - at_s <= SLO_S:
            first_s = first_s if row else time.monotonic()
            row += 1
            if row == GOOD_IN_A_ROW:
                return first_s - began_s
        else:
            row = 0
        time.sleep(PAUSE_S)
    return -1.0


def _is_good(url: str, body: bytes) -> bool:
    request = urllib.request.Request(f"{url}:predict", data=body, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return int(answer.status) == ACCEPTED and bool(answer.read())
    except (OSError, urllib.error.URLError):
        return False


def _picture() -> bytes:
    row = b"[" + b",".join([b"[0.5]"] * 28) + b"]"
    return b"[" + b",".join([row] * 28) + b"]"


def _kill_worker(pid: int) -> float:
    """Kill the model process; the time of it, since the epoch."""
    for one in tree(pid):
        with contextlib.suppress(psutil.Error):
            if WORKER in one.cmdline():
                one.kill()
                return time.time()
    raise ToolError("there is no worker to kill")


def _kill_answer(found: LoadResult, killed_at_s: float, rate: float) -> Kill:
    from datetime import datetime

    run = found.stages[0].run
    began = datetime.fromisoformat(run.began_at).timestamp()
    at_s = killed_at_s - began
    answers = list(zip(run.start_s, run.latency_s, run.codes, strict=True))
    good = sorted(start + latency for start, latency, code in answers
                  if code == ACCEPTED and start >= at_s)  # fmt: skip
    last_s = run.length_s
    return Kill(
        offered_per_s=rate,
        gap_s=good[0] - at_s if good else -1.0,
        codes=codes_of(found),
        slowest_s=max(run.latency_s, default=0.0),
        before_per_s=_rate(answers, 1.0, at_s - 0.5),
        after_per_s=_rate(answers, last_s - 4.0, last_s),
    )


def _rate(answers: Sequence[tuple[float, float, int]], begin_s: float, end_s: float) -> float:
    """Good answers a second in a span."""
    count = sum(begin_s <= start + latency < end_s and code == ACCEPTED
                for start, latency, code in answers)  # fmt: skip
    return count / (end_s - begin_s) if end_s > begin_s else 0.0
