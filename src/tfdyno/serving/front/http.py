"""An HTTP/1.1 server for small requests: limits and time-outs on all that a client may do.

One asyncio protocol on httptools (llhttp). Measured against granian and uvicorn in ADR 0025.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

import httptools

from tfdyno.serving.front.messages import HttpRequest, HttpResponse
from tfdyno.serving.front.table import Refused

HEAD_BYTES = 64 << 10
SLOWEST_BODY_BYTES_PER_S = 64 << 10
PIPELINED = 16
LINGER_S = 1.0
HALF_CLOSED_S = 0.25
"""How long a client that sends no more is taken for one that still reads: an answer that comes
later is given up, and what waits of its request is not computed."""
BODIES_AT_ONCE = 8
"""The bodies of the longest kind at once; unread bodies of all clients together hold no more."""

Handle = Callable[[HttpRequest], Awaitable[HttpResponse]]
ToResponse = Callable[[Refused], HttpResponse]
Admit = Callable[[Mapping[bytes, bytes]], Refused | None]
"""Why the body of a request with such headers is not read; None: it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """What one client may take.

    Attributes:
        body_bytes: Longest body; more is 413.
        read_s: Until when a head must be there, and the grace of a body beyond its bytes at
            64 KiB/s; also how long a client may leave an answer unread.
        idle_s: How long an unused connection is kept.
        connections: Most of them at once; more get 503.
    """

    body_bytes: int
    read_s: float
    idle_s: float = 75.0
    connections: int = 4096


class HttpServer:
    """What the connections share; ``sweep`` is to be called a few times a second."""

    def __init__(
        self,
        handle: Handle,
        to_response: ToResponse,
        limits: HttpLimits,
        admit: Admit = lambda _headers: None,
    ) -> None:
        self.handle, self.to_response, self.limits, self.admit = handle, to_response, limits, admit
        self.connections: set[HttpConnection] = set()
        self.unread_bytes = 0
        self.draining = False

    def connection(self) -> HttpConnection:
        """Return a protocol for asyncio's ``create_server``."""
        return HttpConnection(self)

    def sweep(self, now_s: float) -> None:
        """End the connections whose time is over."""
        for connection in list(self.connections):
            connection.look_at_clock(now_s)

    def make_room(self) -> None:
        """Give up the longest body where all that are not read yet are too long together."""
        if self.unread_bytes > BODIES_AT_ONCE * self.limits.body_bytes:
            max(self.connections, key=lambda one: one.unread_bytes).give_up()

    def drain(self) -> None:
        """Close what is unused now and each other connection after its answer."""
        self.draining = True
        for connection in list(self.connections):
            connection.close_when_idle()


class HttpConnection(asyncio.Protocol):
    """One client: its requests are answered one after the other."""

    def __init__(self, server: HttpServer) -> None:
        self._server, self._limits = server, server.limits
        self._parser = httptools.HttpRequestParser(self)
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[HttpRequest, bool]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._over = False  # nothing more is read from this client
        self._sends_no_more = False
        self._body: list[bytes] = []
        self.unread_bytes = 0
        self._in_head = self._in_body = self._used = False
        self._raw_bytes = self._begun_bytes = 0
        self._unread_since_s: float | None = None

    # What asyncio calls.
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client came."""
        self._transport = cast("asyncio.Transport", transport)
        self._since_s = self._loop.time()
        self._server.connections.add(self)
        if len(self._server.connections) > self._limits.connections:
            self._refuse(Refused(503, "Too many connections", retry_after_s=1))

    def connection_lost(self, error: Exception | None) -> None:
        """The client went."""
        self._over = True
        self._server.connections.discard(self)
        self._count(-self.unread_bytes)
        if self._task:
            self._task.cancel()

    def pause_writing(self) -> None:
        """The client does not read."""
        self._unread_since_s = self._loop.time()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._unread_since_s = None

    def eof_received(self) -> bool:
        """Stay open for a moment: a client that sends no more may still read an answer."""
        if self._task is None or not self._transport.can_write_eof():
            return False
        if not self._sends_no_more:
            self._sends_no_more = True
            self._loop.call_later(HALF_CLOSED_S, self._leave)
        return True

    def _leave(self) -> None:
        if self._task:
            self._task.cancel()
        self._over = True
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._over:
            return
        if not self._in_body and not self._in_head:
            self._since_s = self._loop.time()
            self._begun_bytes = len(data)  # all of it is the next message, unless others follow
        self._in_head = self._in_head or not self._in_body
        self._raw_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._over = True  # what follows is no HTTP/1.1; the request itself is answered
        except httptools.HttpParserError as error:
            self._refuse(Refused(400, f"Not an HTTP/1.1 request: {error}"))
        if self._in_head and self._raw_bytes > HEAD_BYTES:
            self._refuse(Refused(431, f"The head is longer than {HEAD_BYTES} bytes"))
        elif self._in_body and self._raw_bytes > 2 * self._limits.body_bytes + HEAD_BYTES:
            self._refuse(self._too_long())

    # What the parser calls.
    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_head, self._in_body, self._used = True, False, True
        self._raw_bytes, self._begun_bytes = self._begun_bytes, 0
        self._target, self._body_bytes = b"", 0
        self._headers: dict[bytes, bytes] = {}
        self._body = []

    def on_url(self, url: bytes) -> None:
        """Take a piece of the target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header."""
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Refuse, once the head is there, what may not come or is too long before it is sent."""
        self._in_head, self._in_body = False, True
        length = self._headers.get(b"content-length", b"0")
        has_body = length != b"0" or b"transfer-encoding" in self._headers
        refused = self._server.admit(self._headers) if has_body else None
        if refused is None and length.isdigit() and int(length) > self._limits.body_bytes:
            refused = self._too_long()
        if refused is not None:
            self._refuse(refused)
        elif self._headers.get(b"expect", b"").lower() == b"100-continue" and not self._over:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._body_bytes += len(body)
        if self._body_bytes > self._limits.body_bytes:
            self._refuse(self._too_long())
        elif not self._over:
            self._body.append(body)
            self._count(len(body))
            self._server.make_room()

    def on_message_complete(self) -> None:
        """A request is there."""
        self._in_head = self._in_body = False
        self._since_s = self._loop.time()
        if self._over:
            return
        request = HttpRequest(
            method=self._parser.get_method().decode(),
            target=self._target,
            headers=self._headers,
            body=self._body[0] if len(self._body) == 1 else b"".join(self._body),
            begin_s=self._since_s,
        )
        self._waiting.append((request, self._parser.should_keep_alive()))
        if len(self._waiting) >= PIPELINED:
            self._transport.pause_reading()
        if self._task is None:
            self._task = self._loop.create_task(self._answer())

    # Answering.
    async def _answer(self) -> None:
        while self._waiting:
            request, keep = self._waiting.popleft()
            self._count(-len(request.body))
            try:
                response = await self._server.handle(request)
            except asyncio.CancelledError:
                return
            keep = keep and not self._over and not self._server.draining
            self._write(response, keep=keep, with_body=request.method != "HEAD")
            if not keep:
                self._task = None
                self._close()
                return
        self._task = None
        if self._sends_no_more:
            self._close()
            return
        self._since_s = self._loop.time()
        self._transport.resume_reading()

    def _write(self, response: HttpResponse, *, keep: bool, with_body: bool = True) -> None:
        if self._transport.is_closing():
            return
        reason = HTTPStatus(response.code).phrase
        more = "".join(f"{name}: {value}\r\n" for name, value in response.headers)
        connection = "" if keep else "Connection: close\r\n"
        head = (
            f"HTTP/1.1 {response.code} {reason}\r\nContent-Type: {response.content_type}\r\n"
            f"Content-Length: {len(response.body)}\r\n{more}{connection}\r\n"
        )
        self._transport.write(head.encode() + response.body if with_body else head.encode())

    def _refuse(self, refused: Refused) -> None:
        """Answer a request that is not read to its end, and end the connection."""
        if self._over:
            return
        self._over = True
        self._waiting.clear()
        self._body = []
        self._count(-self.unread_bytes)
        if self._task is None:
            self._write(self._server.to_response(refused), keep=False)
            self._close()

    def give_up(self) -> None:
        """Refuse what is being sent, for others need the room."""
        self._refuse(Refused(503, "Too much is being sent at once", retry_after_s=1))

    def _count(self, more_bytes: int) -> None:
        """Count bodies that came and were not handed on: this client's, and all clients'."""
        self.unread_bytes += more_bytes
        self._server.unread_bytes += more_bytes

    def _too_long(self) -> Refused:
        return Refused(413, f"The body is longer than {self._limits.body_bytes} bytes")

    def _close(self) -> None:
        """Close so that the client can still read the answer while it is sending."""
        self._over = True
        if self._transport.is_closing():
            return
        if self._transport.can_write_eof():
            self._transport.write_eof()
            self._loop.call_later(LINGER_S, self._transport.close)
        else:
            self._transport.close()

    # The clock.
    def look_at_clock(self, now_s: float) -> None:
        """End a connection that is too slow or unused for too long."""
        limits, spent_s = self._limits, now_s - self._since_s
        if self._unread_since_s is not None and now_s - self._unread_since_s > limits.read_s:
            self._transport.abort()
        elif self._over:
            if self._task is None and spent_s > limits.read_s + LINGER_S:
                self._transport.abort()
        elif self._in_head or self._in_body:
            grace_s = self._raw_bytes / SLOWEST_BODY_BYTES_PER_S if self._in_body else 0.0
            if spent_s > limits.read_s + grace_s:
                self._refuse(Refused(408, f"The request took longer than {limits.read_s:g} s"))
        elif self._task is None and spent_s > (limits.idle_s if self._used else limits.read_s):
            self._transport.close()

    def close_when_idle(self) -> None:
        """Close now unless a request is being read or answered."""
        if self._task is None and not self._in_head and not self._in_body:
            self._transport.close()
