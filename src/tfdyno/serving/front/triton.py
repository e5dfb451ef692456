"""Calls to the model process over kept connections.

One call costs a quarter of the processor time of gRPC's asyncio client (ADR 0025).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import httptools

from tfdyno.serving.address import host_and_port, socket_path
from tfdyno.serving.front.table import Refused, Signature
from tfdyno.serving.front.wire import Arrays, ModelError, decode, encode, error_text

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Connection(asyncio.Protocol):
    """One kept connection; one call at a time."""

    def __init__(self, pool: ModelClient) -> None:
        self._pool = pool
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[tuple[int, int, bytes]] | None = None
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"the model process answered no HTTP: {error}")
            self._transport.abort()

    def on_message_begin(self) -> None:
        self._head_bytes, self._body = 0, list[bytes]()

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"inference-header-content-length":
            self._head_bytes = int(value)

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        body = b"".join(self._body)
        if self._answer and not self._answer.done():
            self._answer.set_result((self._parser.get_status_code(), self._head_bytes, body))

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        self._pool.forget(self)
        self._fail("the model process ended the connection")

    def _fail(self, text: str) -> None:
        if self._answer and not self._answer.done():
            self._answer.set_exception(ConnectionError(text))

    async def send(self, parts: Sequence[bytes]) -> tuple[int, int, bytes]:
        """Write a request and wait for status, length of the JSON head and body."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(b"".join(parts))
        try:
            return await self._answer
        except asyncio.CancelledError:
            self._transport.abort()
            raise

    def abort(self) -> None:
        self._transport.abort()


class ModelClient:
    """Calls one model process on this machine."""

    def __init__(self, address: str, *, limit_s: float = 600.0) -> None:
        self._address, self._limit_s = address, limit_s
        self._free: list[_Connection] = []

    async def infer(self, parts: Sequence[Arrays], signature: Signature) -> Arrays:
        """Make one call with the rows of all ``parts``.

        Raises:
            ModelError: The model answered with an error.
            Refused: 503 where the model process cannot be reached or broke off.
        """
        head, blobs = encode(parts, signature)
        size = len(head) + sum(map(len, blobs))
        first = (
            f"POST /v2/models/{signature.model}/infer HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Inference-Header-Content-Length: {len(head)}\r\nContent-Length: {size}\r\n\r\n"
        ).encode()
        code, head_bytes, body = await self._exchange([first, head, *blobs])
        if code != 200:
            raise ModelError(code, error_text(body))
        return decode(body, head_bytes or len(body), signature)

    async def _exchange(self, parts: list[bytes]) -> tuple[int, int, bytes]:
        try:
            connection = self._free.pop() if self._free else await self._connect()
            async with asyncio.timeout(self._limit_s):
                answer = await connection.send(parts)
        except TimeoutError:
            raise Refused(504, "The model did not answer in time") from None
        except OSError as error:
            text = f"The model process is not there: {error.strerror or error}"
            raise Refused(503, text, retry_after_s=1) from None
        if not connection.closed:
            self._free.append(connection)
        return answer

    async def _connect(self) -> _Connection:
        loop, path = asyncio.get_running_loop(), socket_path(self._address)
        if path:
            _, connection = await loop.create_unix_connection(lambda: _Connection(self), path)
        else:
            host, port = host_and_port(self._address)
            _, connection = await loop.create_connection(lambda: _Connection(self), host, port)
        return connection

    def forget(self, connection: _Connection) -> None:
        """Do not use a closed connection again."""
        if connection in self._free:
            self._free.remove(connection)

    def close(self) -> None:
        """Close the connections that are not in use."""
        for connection in list(self._free):
            connection.abort()
