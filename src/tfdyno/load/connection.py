"""One HTTP/1.1 connection with one request under way: as little work as asyncio allows.

The client shares its CPUs with the server that it measures, so what it spends is missing there.
Only what a load test needs is read: status, length of the body (``Content-Length``, chunks or the
end of the connection) and whether the connection stays.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

HEAD_END = b"\r\n\r\n"
MOST_HEAD_BYTES = 65_536
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.I)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r]*chunked", re.I)
_CLOSE = re.compile(rb"\r\nconnection:[^\r]*close", re.I)

Answered = Callable[["Connection", int, bytes, bytes], None]
"""The connection, the status, head and body of the answer."""
Lost = Callable[["Connection"], None]


class Connection(asyncio.Protocol):
    """Sends one request at a time and tells of its answer."""

    __slots__ = (
        "answered", "buffer", "busy", "closes", "greeted", "idle_s", "lost", "number", "stale",
        "start_s", "transport",
    )  # fmt: skip

    def __init__(self, answered: Answered, lost: Lost) -> None:
        self.answered, self.lost = answered, lost
        self.transport: asyncio.Transport | None = None
        self.buffer = b""
        self.busy = False
        self.closes = False
        """The server has said that it closes the connection after this answer."""
        self.start_s = 0.0
        """When the request under way was meant to start."""
        self.number = 0
        """Which of the prepared requests it is."""
        self.greeted = False
        """Whether an answer was looked at for the server's name."""
        self.idle_s = 0.0
        """When it was last free."""
        self.stale = False
        """Whether it was free for so long that the server may close it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent."""
        return self.transport is not None and not self.transport.is_closing() and not self.closes

    def send(self, request: bytes, start_s: float, number: int) -> None:
        """Send a whole request."""
        assert self.transport
        self.busy, self.start_s, self.number = True, start_s, number
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Read on; an answer that is whole is told."""
        self.buffer = self.buffer + data if self.buffer else data
        self._read()

    def eof_received(self) -> bool:
        """Have the connection closed: the server sends no more, as behind a body without length."""
        return False

    def connection_lost(self, _error: Exception | None) -> None:
        """Tell of it, unless an answer without a length ended so."""
        if self.busy and self._whole_without_length():
            head, _, body = self.buffer.partition(HEAD_END)
            self._tell(head, body, b"")
        self.closes = True
        self.transport = None
        self.lost(self)

    def abort(self) -> None:
        """Close without a word to the server."""
        self.closes = True
        if self.transport:
            self.transport.abort()

    def _read(self) -> None:
        end = self.buffer.find(HEAD_END)
        if end < 0:
            if len(self.buffer) > MOST_HEAD_BYTES:
                self.abort()
            return
        head = self.buffer[:end]
        if head.startswith(b"HTTP/1.1 100"):
            self.buffer = self.buffer[end + 4 :]
            self._read()
            return
        if (match := _LENGTH.search(head)) is not None:
            last = end + 4 + int(match.group(1))
            if len(self.buffer) >= last:
                self._tell(head, self.buffer[end + 4 : last], self.buffer[last:])
        elif _CHUNKED.search(head):
            found = unchunked(self.buffer, end + 4)
            if found is not None:
                body, last = found
                self._tell(head, body, self.buffer[last:])
        elif head[9:12] in (b"204", b"304"):
            self._tell(head, b"", self.buffer[end + 4 :])

    def _whole_without_length(self) -> bool:
        head, found, _ = self.buffer.partition(HEAD_END)
        return bool(found) and not _LENGTH.search(head) and not _CHUNKED.search(head)

    def _tell(self, head: bytes, body: bytes, rest: bytes) -> None:
        if not self.busy:  # an answer that nobody asked for: the connection is of no use
            self.abort()
            return
        self.buffer, self.busy = rest, False
        self.closes = self.closes or _CLOSE.search(head) is not None
        if self.closes and self.transport:
            self.transport.close()
        self.answered(self, status_of(head), head, body)


def status_of(head: bytes) -> int:
    """Return the status of an answer; 0 where its first line is no status line of HTTP."""
    word = head[9:12]
    return int(word) if head.startswith(b"HTTP/1.") and word.isdigit() else 0


def unchunked(data: bytes, start: int) -> tuple[bytes, int] | None:
    """Return a body in chunks and where it ends; None: it is not whole yet.

    Raises:
        ValueError: The length of a chunk is no hexadecimal number.
    """
    parts: list[bytes] = []
    at = start
    while (line_end := data.find(b"\r\n", at)) >= 0:
        size = int(data[at:line_end].partition(b";")[0], 16)
        begin = line_end + 2
        if size == 0:
            trailer_end = data.find(b"\r\n", begin)
            if trailer_end == begin:
                return b"".join(parts), begin + 2
            ends = data.find(HEAD_END, begin)
            return None if ends < 0 else (b"".join(parts), ends + 4)
        if len(data) < begin + size + 2:
            return None
        parts.append(data[begin : begin + size])
        at = begin + size + 2
    return None
