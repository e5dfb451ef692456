"""The listening socket: takes many waiting clients at each look."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

    from tfdyno.runtime.front_http import HttpServer

BACKLOG = 1024
AT_ONCE = 64
"""Clients taken per turn of the loop. libuv by itself takes one: under overload, when a turn is
long, 640 clients waited up to 12 s to be heard."""


class Listener:
    """Gives each client that connects to the server.

    Raises:
        OSError: The address cannot be listened at.
    """

    def __init__(
        self, server: HttpServer, host: str, port: int, tls: ssl.SSLContext | None
    ) -> None:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        self._socket = socket.create_server(address[:2], family=family, backlog=BACKLOG)
        self._socket.setblocking(False)
        self._server, self._tls = server, tls
        self._loop = asyncio.get_running_loop()
        self._starting: set[asyncio.Task[None]] = set()
        self.port: int = self._socket.getsockname()[1]
        self._loop.add_reader(self._socket, self._take)

    def close(self) -> None:
        """Take no more clients."""
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._socket.close()

    def _take(self) -> None:
        # Without a free file descriptor they wait: the reader is called again.
        with contextlib.suppress(OSError):
            for _ in range(AT_ONCE):
                client, _ = self._socket.accept()
                client.setblocking(False)
                task = self._loop.create_task(self._start(client))
                self._starting.add(task)
                task.add_done_callback(self._starting.discard)

    async def _start(self, client: socket.socket) -> None:
        limit_s = self._server.limits.read_s if self._tls else None
        try:
            await self._loop.connect_accepted_socket(
                self._server.connection, client, ssl=self._tls, ssl_handshake_timeout=limit_s
            )
        except OSError:  # the client left, or spoke no TLS
            client.close()
