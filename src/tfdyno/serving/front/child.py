"""The process that clients talk to: ``python -m tfdyno.serving.front.child``, told by JSON lines.

The first line on standard input holds the settings, each further one a command: ``serve`` with
the whole table of models, or ``drain``. Events go to standard output, one JSON line each.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import ssl
import sys
from typing import TYPE_CHECKING, Any

import uvloop

from tfdyno.core.messages.serve import (
    Drained,
    Failed,
    FrontCommand,
    FrontSettings,
    Idle,
    Listening,
    TableInUse,
)
from tfdyno.core.messages.wire import decode, encode
from tfdyno.serving.front.app import Front
from tfdyno.serving.front.backends import Backends
from tfdyno.serving.front.http import HttpLimits, HttpServer
from tfdyno.serving.front.listener import Listener, most_connections, open_files
from tfdyno.serving.front.messages import refusal
from tfdyno.serving.front.metrics import FrontMetrics
from tfdyno.serving.front.queue import Limits
from tfdyno.serving.front.table import read_table
from tfdyno.serving.front.triton import ModelClient

if TYPE_CHECKING:
    from tfdyno.core.messages.serve import Said

SWEEP_S = 0.25
BEAT_S = 0.05
NEWEST_BEAT_RATIO = 0.5
"""Weight of the newest beat in the running mean of how late this process is."""
DRAIN_S = 8.0
"""Longest wait for what is under way; ``tfdyno serve`` ends within ten seconds."""
LINE_BYTES = 16 << 20


def tell(event: Said) -> None:
    """Write an event for the supervisor."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(encode(event) + "\n")
        sys.stdout.flush()


class Process:
    """Server, queue and backends, and the commands that change them."""

    def __init__(self, settings: FrontSettings) -> None:
        loop = asyncio.get_running_loop()
        self.settings, self.metrics = settings, FrontMetrics()
        self.lag_s = 0.0
        limits = Limits(
            rows=settings.max_batch_size,
            delay_s=settings.max_delay_ms / 1e3,
            waiting_rows=settings.max_queue,
        )
        self.backends = Backends(
            limits,
            self.metrics,
            connect=ModelClient,
            tell_idle=lambda address: tell(Idle(address=address)),
        )
        self._deadline_s = settings.deadline_ms / 1e3 if settings.deadline_ms else math.inf
        self._grpc_face: Any = None
        self._grpc_server: Any = None
        self.front = Front(
            self.backends,
            self.metrics,
            token=settings.token,
            deadline_s=self._deadline_s,
            clock=loop.time,
            lag_s=lambda: self.lag_s,
        )
        http = HttpLimits(
            body_bytes=settings.max_body_bytes,
            read_s=settings.read_timeout_s,
            connections=most_connections(open_files()),
        )
        self.server = HttpServer(self.front.handle, refusal, http, self.front.admit)
        self.metrics.gauges["tfdyno_connections"] = (
            "Open connections of clients.", lambda: {(): float(len(self.server.connections))},
        )  # fmt: skip

    async def listen(self) -> Listener:
        """Open the port and say so."""
        settings, tls = self.settings, self._tls()
        server = Listener(self.server, settings.host, settings.port, tls)
        port = server.port
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        url = f"{'https' if tls else 'http'}://{host}:{port}"
        try:
            grpc_port = await self._listen_grpc()
        except OSError:
            server.close()
            raise
        tell(Listening(url=url, port=port, grpc_port=grpc_port))
        return server

    async def _listen_grpc(self) -> int | None:
        settings = self.settings
        if settings.grpc_port is None:
            return None
        from tfdyno.serving.front import grpc as front_grpc  # only now: its packages are large

        tls = None
        if settings.tls_cert and settings.tls_key:
            tls = (settings.tls_key.read_bytes(), settings.tls_cert.read_bytes())
        self._grpc_face = front_grpc.GrpcFace(
            self.backends,
            self.metrics,
            token=settings.token,
            deadline_s=self._deadline_s,
            max_bytes=settings.max_body_bytes,
            lag_s=lambda: self.lag_s,
        )
        self._grpc_server, port = await front_grpc.listen(
            self._grpc_face,
            host=settings.host,
            port=settings.grpc_port,
            tls=tls,
        )
        return port

    def _tls(self) -> ssl.SSLContext | None:
        if not self.settings.tls_cert:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.settings.tls_cert, self.settings.tls_key)
        context.set_alpn_protocols(["http/1.1"])
        return context

    async def drain(self) -> None:
        """Take nothing new, wait for what is under way."""
        self.front.draining = True
        if self._grpc_face:
            self._grpc_face.draining = True
        loop = asyncio.get_running_loop()
        end_s = loop.time() + DRAIN_S
        self.server.drain()
        while (self.server.connections or not self.backends.idle()) and loop.time() < end_s:
            self.server.drain()
            await asyncio.sleep(0.02)

    async def close(self) -> None:
        """End the gRPC server, if there is one."""
        if self._grpc_server:
            await self._grpc_server.stop(0.5)

    async def sweep(self) -> None:
        """Look at the clock of all connections, for ever."""
        while True:
            await asyncio.sleep(SWEEP_S)
            self.server.sweep(asyncio.get_running_loop().time())

    async def feel_lag(self) -> None:
        """Measure how late this process looks at what has come, for ever.

        A time-out that is due waits as long to be seen as bytes in a socket do.
        """
        loop = asyncio.get_running_loop()
        while True:
            due_s = loop.time() + BEAT_S
            await asyncio.sleep(BEAT_S)
            late_s = max(loop.time() - due_s, 0.0)
            self.lag_s += NEWEST_BEAT_RATIO * (late_s - self.lag_s)


async def run() -> int:
    """Read settings, serve, follow the commands until ``drain`` or the end of input."""
    lines = asyncio.StreamReader(limit=LINE_BYTES)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    first = await lines.readline()
    if not first:
        return 0
    process = Process(decode(json.loads(first), FrontSettings))
    try:
        server = await process.listen()
    except OSError as error:
        where = f"{process.settings.host}:{process.settings.port}"
        what = f"the front cannot listen on {where}"
        tell(Failed(kind="usage", what=what, why=str(error)))
        return 1
    watching = [asyncio.create_task(each) for each in (process.sweep(), process.feel_lag())]
    while line := await lines.readline():
        command = decode(json.loads(line), FrontCommand)
        if command.command == "serve":
            process.backends.switch(read_table(command.models))
            tell(TableInUse(id=command.id))
        else:
            await process.drain()
            await process.close()
            tell(Drained())
            break
    server.close()
    await process.close()
    for task in watching:
        task.cancel()
    return 0


if __name__ == "__main__":
    sys.exit(uvloop.run(run()))
