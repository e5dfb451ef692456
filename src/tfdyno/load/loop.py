"""The loops of a load test: clients that wait for each answer, arrivals that wait for nobody."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tfdyno.core.measure.load import CONNECTION, TIMEOUT, LoadPlan
from tfdyno.load.connection import Connection

MOST_CONNECTIONS = 900
"""The most connections of an open loop, whose ``select`` takes no more than 1024 files; arrivals
beyond wait in the client, and that wait counts as latency."""
TICK_S = 0.02
"""How often the client looks how late its own loop is."""
SWEEP_S = 0.25
"""How often it looks for requests without an answer."""
RECONNECT_S = 0.05
"""The time before the next try where a connection was refused."""
STALE_S = 1.0
"""A connection idle for longer may be closed by the server just when it is used: as every client
does, the request is then sent again on another one."""
MOST_REFUSED = 100
"""Connections refused one after the other, after which nobody is taken to listen any more."""

Check = Callable[[int, int, bytes], int]
"""Number of the request, status, body -> the code that counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where requests go."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None


@dataclass(slots=True, kw_only=True)
class Recorded:
    """What has been answered so far, one entry a request."""

    start_s: list[float] = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    lags_s: list[float] = field(default_factory=list)
    heads: set[bytes] = field(default_factory=set)
    """``Server`` headers that were seen, one look a connection."""
    examples: dict[int, str] = field(default_factory=dict)
    reconnects: int = 0
    length_s: float = 0.0
    cpu_s: float = 0.0


class LoadLoop:
    """Runs one plan against one target."""

    def __init__(
        self, plan: LoadPlan, target: Target, requests: Sequence[bytes], check: Check
    ) -> None:
        self.plan, self.target, self.requests, self.check = plan, target, requests, check
        self.found = Recorded()
        self.over = False
        """No more requests are begun."""
        self.idle: list[Connection] = []
        self.all: set[Connection] = set()
        self.opening = 0
        self.refused = 0
        self.waiting: deque[float] = deque()
        """When those arrivals were due that wait for a connection; oldest first."""
        self.sent = 0
        self.began_s = 0.0

    async def run(self) -> Recorded:
        """Load the target for the plan's time, wait for what is under way, and tell."""
        loop = asyncio.get_running_loop()
        first = self.plan.clients if self.plan.kind == "closed" else min(32, MOST_CONNECTIONS)
        await asyncio.gather(*(self._open() for _ in range(first)))
        cpu_s, self.began_s = time.process_time(), loop.time()
        beside = [asyncio.ensure_future(self._tick()), asyncio.ensure_future(self._sweep())]
        await (self._closed() if self.plan.kind == "closed" else self._arrivals())
        self.over = True
        self.found.length_s = loop.time() - self.began_s
        self.found.cpu_s = time.process_time() - cpu_s
        await self._settled()
        for task in beside:
            task.cancel()
        for one in list(self.all):
            one.abort()
        return self.found

    @property
    def end_s(self) -> float:
        """When no more requests are begun."""
        return self.began_s + self.plan.warmup_s + self.plan.seconds_s

    def stop(self) -> None:
        """Begin no more requests: what is under way is still waited for."""
        self.over = True

    async def _closed(self) -> None:
        loop = asyncio.get_running_loop()
        for one in self.idle:
            self._send(one, loop.time())
        self.idle = []
        while loop.time() < self.end_s and not self.over:
            await asyncio.sleep(min(TICK_S, max(0.0, self.end_s - loop.time())))

    async def _arrivals(self) -> None:
        """Draw Poisson arrivals: exponential gaps, drawn before any answer."""
        loop, draw = asyncio.get_running_loop(), random.Random(self.plan.seed)
        at_s = self.began_s + draw.expovariate(self.plan.rate_per_s)
        while at_s < self.end_s and not self.over:
            if (wait_s := at_s - loop.time()) > 0.0:
                await asyncio.sleep(wait_s)
            else:
                await asyncio.sleep(0)  # answers are read between two arrivals that are due
            while at_s <= loop.time() and at_s < self.end_s:
                self._arrive(at_s)
                at_s += draw.expovariate(self.plan.rate_per_s)

    def _arrive(self, start_s: float) -> None:
        while self.idle:
            one = self.idle.pop()
            if one.is_open:
                one.stale = asyncio.get_running_loop().time() - one.idle_s > STALE_S
                self._send(one, start_s)
                return
        self.waiting.append(start_s)
        if len(self.all) + self.opening < MOST_CONNECTIONS:
            self._reopen()

    def _send(self, one: Connection, start_s: float) -> None:
        number = self.sent % len(self.requests)
        self.sent += 1
        one.send(self.requests[number], start_s, number)

    def _answered(self, one: Connection, status: int, head: bytes, body: bytes) -> None:
        now_s = asyncio.get_running_loop().time()
        code = self.check(one.number, status, body)
        self._record(one.start_s, now_s, code, body)
        if not one.greeted:
            one.greeted = True
            self.found.heads.add(_server_of(head))
        if one.is_open:
            self._next(one, now_s)

    def _next(self, one: Connection, now_s: float) -> None:
        """Give a free connection what it does next."""
        if self.waiting:
            self._send(one, self.waiting.popleft())
        elif self.plan.kind == "closed" and not self.over and now_s < self.end_s:
            self._send(one, now_s)
        else:
            one.idle_s = now_s
            self.idle.append(one)

    def _record(self, start_s: float, end_s: float, code: int, said: bytes = b"") -> None:
        self.found.start_s.append(start_s - self.began_s)
        self.found.latency_s.append(end_s - start_s)
        self.found.codes.append(code)
        if code != 200 and code not in self.found.examples:
            self.found.examples[code] = said[:300].decode("utf-8", "replace")

    def _lost(self, one: Connection) -> None:
        self.all.discard(one)
        if one.busy and one.stale and not one.buffer:
            self.waiting.appendleft(one.start_s)
            self.found.reconnects += 1
        elif one.busy:
            one.busy = False
            code = CONNECTION
            now_s = asyncio.get_running_loop().time()
            if now_s - one.start_s >= self.plan.timeout_s:
                code = TIMEOUT
            self._record(one.start_s, now_s, code, b"the server closed it without an answer")
        elif not self.over:
            self.found.reconnects += 1
        wanted = self.plan.kind == "closed" or self.waiting
        if wanted and not self._is_over():
            self._reopen()

    def _is_over(self) -> bool:
        return self.over and not self.waiting

    def _reopen(self) -> None:
        self.opening += 1
        task = asyncio.ensure_future(self._open_for_use())
        task.add_done_callback(lambda done: done.exception())

    async def _open_for_use(self) -> None:
        try:
            await self._open()
        except OSError as error:
            self.refused += 1
            self._record_refused(str(error))
            await asyncio.sleep(RECONNECT_S)
            if self.refused >= MOST_REFUSED:
                self.stop()
            elif not self._is_over():
                self._reopen()
            return
        finally:
            self.opening -= 1
        if self.idle:
            self._next(self.idle.pop(), asyncio.get_running_loop().time())

    def _record_refused(self, said: str) -> None:
        now_s = asyncio.get_running_loop().time()
        start_s = self.waiting.popleft() if self.waiting else now_s
        self._record(start_s, now_s, CONNECTION, said.encode())

    async def _open(self) -> None:
        """Open one more connection that is idle; raises ``OSError``."""
        loop = asyncio.get_running_loop()
        _, one = await asyncio.wait_for(
            loop.create_connection(
                lambda: Connection(self._answered, self._lost),
                self.target.host, self.target.port, ssl=self.target.tls,
            ),
            timeout=self.plan.timeout_s,
        )  # fmt: skip
        self.refused = 0
        one.idle_s = loop.time()
        self.all.add(one)
        self.idle.append(one)

    async def _tick(self) -> None:
        """Note how late the loop runs what is due: what the client itself adds to a latency."""
        loop = asyncio.get_running_loop()
        while not self.over:
            due_s = loop.time() + TICK_S
            await asyncio.sleep(TICK_S)
            self.found.lags_s.append(max(0.0, loop.time() - due_s))

    async def _sweep(self) -> None:
        """End requests that have waited too long, in the client or for the server."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_S)
            oldest_s = loop.time() - self.plan.timeout_s
            for one in [one for one in self.all if one.busy and one.start_s < oldest_s]:
                one.abort()
            while self.waiting and self.waiting[0] < oldest_s:
                self._record(
                    self.waiting.popleft(), loop.time(), TIMEOUT, b"no connection was free"
                )

    async def _settled(self) -> None:
        """Wait until nothing is under way; the sweep ends what stays."""
        loop = asyncio.get_running_loop()
        last_s = loop.time() + self.plan.timeout_s + 4 * SWEEP_S
        while loop.time() < last_s:
            if not self.waiting and not any(one.busy for one in self.all):
                return
            await asyncio.sleep(TICK_S / 2)


def _server_of(head: bytes) -> bytes:
    """Return the ``Server`` header of an answer; empty: it has none."""
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"server":
            return value.strip()
    return b""
