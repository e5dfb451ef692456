"""Keeps the processes of a server in the state that is wanted: starts, replaces, drains, ends."""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tfdyno.catalog.assumptions import serving_overhead
from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.core.messages.serve import (
    Failed,
    Idle,
    Known,
    Listening,
    ModelFacts,
    ModelReady,
    ServedBatching,
    ServeModel,
    TableInUse,
)
from tfdyno.jobs.child.recipe_env import AUTO_CLUSTERING
from tfdyno.jobs.serve._backend import Backend, error_of, scratch_folder, start_backend
from tfdyno.jobs.serve._front import ServeFront
from tfdyno.jobs.serve._request import Ready
from tfdyno.jobs.serve._versions import Wanted
from tfdyno.rules.compiler import fault_in, next_step
from tfdyno.words.recipe.retreats import step_line

if TYPE_CHECKING:
    from tfdyno.core.recipe.retreat import Retreat
    from tfdyno.engines.process.serving_process import Event
    from tfdyno.jobs.serve._request import ServeReporter, ServeRequest
    from tfdyno.jobs.serve._versions import Watch

SLICE_S = 0.2
LOOK_S = 1.0
"""How often it is looked whether there is another version."""
DRAIN_S = 5.5
"""How long what is in flight may take after the request to end."""
GONE_S = 2.5
"""How long a process may take to end that nobody uses any more."""
IDLE_S = 60.0
"""How long a version that was replaced may work on what it has."""
MOST_FAILURES = 5
WITHIN_S = 60.0
"""So many failures in such a time, and it is given up."""
MOST_AT_START = 3
"""So many before it has ever answered."""
LONGEST_PAUSE_S = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The files of a version were read."""

    wanted: Wanted
    error: TfdynoError | None


class Supervisor:
    """Keeps the processes in the state that is wanted. All happens in the thread that runs it."""

    def __init__(
        self, request: ServeRequest, told: ServeReporter, python: str, name: str, watch: Watch
    ) -> None:
        self.request, self.told, self.python, self.name = request, told, python, name
        self.watch = watch
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.backends: list[Backend] = []
        self.front = ServeFront(request=request, python=python, hear=self.events.put)
        self.is_ready = False
        self.failures = Failures()
        self.refused: set[str] = set()
        """Marks of states that cannot be served: not tried again until the files change."""
        self.batching: ServedBatching | None = None
        self.known: dict[str, Known] = {}
        """Mark -> what was served in that state."""
        self.checking: set[str] = set()
        self.checked: set[str] = set()
        """Marks of states whose files are being read, and of those that are sound."""
        self.retreats: dict[str, tuple[Retreat, ...]] = {}
        """Mark -> steps back from compiles that failed inside XLA."""
        self.clearing: list[threading.Thread] = []
        self.began_s = time.monotonic()

    def run(self, first: tuple[Wanted, ...]) -> None:
        """Start, and keep it so until a signal says to end."""
        self.wanted = first
        self.told.progress(f"loading {self.name} version {first[0].version}")
        look_s = 0.0
        while True:
            if self.is_ready and time.monotonic() >= look_s:
                self.wanted = self.watch.look()
                look_s = time.monotonic() + LOOK_S
            self._reconcile()
            try:
                event = self.events.get(timeout=SLICE_S)
            except queue.Empty:
                continue
            if event == signal.SIGHUP:
                self.refused.clear()
                look_s = 0.0
            elif isinstance(event, signal.Signals):
                self._drain()
                return
            elif isinstance(event, Checked):
                self._take_check(event)
            else:
                self._hear(event)

    def _reconcile(self) -> None:
        """Start what is missing, tell the front, and end what nobody needs."""
        live = {one.wanted.mark: one for one in self.backends if one.state != "leaving"}
        starts = any(one.state == "starting" for one in self.backends)
        for one in self.wanted:
            is_missing = one.mark not in live and one.mark not in self.refused
            # One at a time: each takes a core to load and may take much memory.
            if is_missing and not starts and self.failures.is_time:
                if one.mark in self.checked:
                    self._start_backend(one)
                else:
                    self._check(one)
                starts = True
        serving = [one for one in self.backends if one.state == "serving"]
        measured = self.batching or not self.request.p99_ms
        if not self.front.is_started and self.failures.is_time and (measured or serving):
            self.front.start(self.batching)
        if self.front.listening:
            self._tell_front(serving)
        for leaver in self.backends:
            if leaver.state == "leaving" and 0 < leaver.leaves_s <= time.monotonic():
                self._dismiss(leaver)

    def _tell_front(self, serving: list[Backend]) -> None:
        """Give the front the table of what is to answer, when it is another than before."""
        marks = [one.mark for one in self.wanted]
        wanted = [one for one in serving if one.wanted.mark in marks]
        # Until all that is wanted answers, what answered before goes on.
        is_whole = {one.wanted.mark for one in wanted} >= set(marks) - self.refused
        shown = wanted if wanted and is_whole else serving
        versions = {str(one.wanted.version): one.row for one in shown if one not in wanted}
        versions |= {str(one.wanted.version): one.row for one in wanted}
        order = [str(one.version) for one in self.wanted if str(one.version) in versions]
        default = order[0] if order else next(iter(versions), "")
        facts = ModelFacts(default=default, versions=versions)
        models = {self.name: facts} if versions else {}
        if not self.front.tell(models):
            return
        addresses = {row.address for row in versions.values()}
        for one in serving:
            if one.request.address not in addresses:
                one.state, one.leaves_s = "leaving", time.monotonic() + IDLE_S

    def _hear(self, event: Event) -> None:
        """Take what a process said, or its end."""
        if event.process is self.front.process:
            self._hear_front(event)
            return
        backend = next((one for one in self.backends if one.process is event.process), None)
        if backend is None:
            return
        said = event.said
        if isinstance(said, ModelReady) and self._steps_back(backend, "\n".join(said.unanswered)):
            backend.state = "leaving"
            self._dismiss(backend)
        elif isinstance(said, ModelReady):
            backend.state, backend.ready = "serving", said
            self._remember(backend.wanted.mark, said)
            self.batching = self.batching or said.batching
            self.told.progress("starting the front")
        elif isinstance(said, Failed) or said is None:
            self._lost(backend, event)

    def _check(self, wanted: Wanted) -> None:
        """Read the files of a version, in a thread: that may take longer than the end may."""
        if wanted.mark in self.checking:
            return
        self.checking.add(wanted.mark)

        def read() -> None:
            error = None
            try:
                self.watch.policy.check(wanted)
            except TfdynoError as found:
                error = found
            self.events.put(Checked(wanted=wanted, error=error))

        threading.Thread(target=read, daemon=True).start()

    def _take_check(self, found: Checked) -> None:
        """Take a version that may be loaded, or refuse it."""
        self.checking.discard(found.wanted.mark)
        if not found.error:
            self.checked.add(found.wanted.mark)
        elif not self.is_ready:
            raise found.error
        else:
            self.refused.add(found.wanted.mark)
            self.told.notice(f"version {found.wanted.version} is not served: {found.error}")

    def _remember(self, mark: str, ready: ModelReady) -> None:
        """Keep what a version turned out to be: its process starts faster when that is known."""
        kept = {one.mark for one in self.wanted}
        self.known = {one: facts for one, facts in self.known.items() if one in kept}
        self.known[mark] = Known(signatures=ready.signatures, batching=ready.batching)

    def _lost(self, backend: Backend, event: Event) -> None:
        """Put away what a version's lost process leaves, beside the next start."""
        was = backend.state
        within_s = GONE_S if event.said else 0.0
        clearing = threading.Thread(target=backend.clear, args=(within_s,))
        clearing.start()
        self.clearing = [*(one for one in self.clearing if one.is_alive()), clearing]
        self.backends.remove(backend)
        if was == "starting":
            self.known.pop(backend.wanted.mark, None)
        if was == "leaving":
            return
        error = error_of(event)
        version = backend.wanted.version
        said = "\n".join([str(error), *event.process.lines])
        if was == "starting" and self._steps_back(backend, said):
            return
        if isinstance(error, UsageError):
            if not self.is_ready:
                raise error
            self.refused.add(backend.wanted.mark)
            self.told.notice(f"version {version} is not served: {error}")
            return
        self.failures.add(error, at_start=not self.is_ready)
        if was == "serving":
            self.told.notice(f"version {version} is started again: {error}")

    def _steps_back(self, backend: Backend, said: str) -> bool:
        """Let a version start again with less of XLA, where XLA fails inside to compile it."""
        fault, done = fault_in(said), self.retreats.get(backend.wanted.mark, ())
        if fault is None or not self.request.retreat:
            return False
        step = next_step(
            fault, said, tried=[one.step for one in done],
            own_flags=os.environ.get("XLA_FLAGS", ""),
            has_graph=AUTO_CLUSTERING in os.environ.get("TF_XLA_FLAGS", ""),
        )  # fmt: skip
        if step is None:
            return False
        self.retreats[backend.wanted.mark] = (*done, step)
        subject = f"version {backend.wanted.version}"
        self.told.notice(step_line(subject, step, is_served=True))
        return True

    def _hear_front(self, event: Event) -> None:
        said = event.said
        if isinstance(said, Listening):
            self.front.listening = said
        elif isinstance(said, TableInUse):
            self._in_use()
        elif isinstance(said, Idle):
            for one in self.backends:
                if one.state == "leaving" and one.request.address == said.address:
                    self._dismiss(one)
        elif isinstance(said, Failed) or said is None:
            self._lost_front(event)

    def _in_use(self) -> None:
        """Note that the front uses the newest table."""
        served = ", ".join(self.front.served)
        if self.is_ready:
            words = f"serving version {served}" if served else "no version answers"
            self.told.notice(words)
        elif served:
            self.is_ready = True
            self._tell_ready()

    def _lost_front(self, event: Event) -> None:
        error = error_of(event)
        self.front.end()
        if isinstance(error, UsageError) and not self.is_ready:
            raise error
        self.failures.add(error, at_start=not self.is_ready)
        if self.is_ready:
            self.told.notice(f"the front is started again: {error}")

    def _tell_ready(self) -> None:
        first = next(one for one in self.backends if one.state == "serving")
        assert first.ready
        assert self.front.listening
        ready = Ready(
            url=f"{self.front.listening.url}/v1/models/{self.name}",
            name=self.name,
            versions=tuple(int(one) for one in self.front.served),
            grpc_port=self.front.listening.grpc_port,
            batching=first.ready.batching,
            signatures=first.ready.signatures,
            start_s=round(time.monotonic() - self.began_s, 3),
            retreats=self.retreats.get(first.wanted.mark, ()),
        )
        self.told.ready(ready)

    def _start_backend(self, wanted: Wanted) -> None:
        asked, batching, scratch = self.request, self.batching, scratch_folder()
        request = ServeModel(
            model=wanted.path.absolute(),
            name=self.name,
            scratch=scratch,
            address=f"unix:{scratch / 'http'}",
            max_batch_size=batching.max_batch_size if batching else asked.max_batch,
            max_delay_ms=batching.max_delay_ms if batching else asked.max_delay_ms,
            p99_ms=None if batching else asked.p99_ms,  # measured once, without load
            requests_per_s=asked.requests_per_s,
            beside_s=serving_overhead().call_s,
            threads_intra=asked.threads,
            known=self.known.get(wanted.mark),
        )
        backend = start_backend(
            wanted, request, python=self.python, log=asked.log, hear=self.events.put,
            retreats=self.retreats.get(wanted.mark, ()),
        )  # fmt: skip
        self.backends.append(backend)

    def _dismiss(self, backend: Backend) -> None:
        """End a version that is no longer used; its end is heard."""
        backend.leaves_s = 0.0
        backend.process.terminate()

    def _drain(self) -> None:
        """Take no new requests, answer those in flight, within the time for it."""
        if not self.front.listening:
            return
        until_s = time.monotonic() + DRAIN_S
        self.front.drain()
        while self.front.runs and time.monotonic() < until_s:
            try:
                event = self.events.get(timeout=SLICE_S)
            except queue.Empty:
                continue
            if event in (signal.SIGTERM, signal.SIGINT):
                return  # a second one: what is in flight is given up

    def end(self) -> None:
        """End every process; nothing of them is left."""
        for one in self.backends:
            one.process.terminate()
        self.front.end()
        until_s = time.monotonic() + GONE_S
        for one in self.backends:
            one.clear(within_s=until_s - time.monotonic())
        self.backends.clear()
        for thread in self.clearing:
            thread.join()


@dataclass(slots=True)
class Failures:
    """Counts what went wrong of late, and says how long to wait before the next try."""

    times_s: deque[float] = field(default_factory=deque)
    try_at_s: float = 0.0
    in_all: int = 0

    def add(self, error: TfdynoError, *, at_start: bool) -> None:
        """Count one more; raises ``ToolError`` when there are too many."""
        now_s = time.monotonic()
        self.times_s.append(now_s)
        while self.times_s and self.times_s[0] < now_s - WITHIN_S:
            self.times_s.popleft()
        self.in_all += 1
        if len(self.times_s) >= MOST_FAILURES or (at_start and self.in_all >= MOST_AT_START):
            why = f"{self.in_all} failures, at last: {error}"
            raise ToolError("the server is given up", why=why)
        pause_s = 0.0 if len(self.times_s) == 1 else 2.0 ** (len(self.times_s) - 2)
        self.try_at_s = now_s + min(pause_s, LONGEST_PAUSE_S)

    @property
    def is_time(self) -> bool:
        """Whether the next try may begin."""
        return time.monotonic() >= self.try_at_s
