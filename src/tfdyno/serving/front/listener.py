"""The listening socket: takes many waiting clients at each look."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import resource
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

    from tfdyno.serving.front.http import HttpServer

BACKLOG = 1024
AT_ONCE = 64
"""Clients taken per turn of the loop. libuv by itself takes one: under overload, when a turn is
long, 640 clients waited up to 12 s to be heard."""
PAUSE_S = 0.1
"""The pause without a free file descriptor, in which nobody is taken; the loop would else look for
ever."""
NOTHING_FREE = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
MOST_CONNECTIONS = 4096
RESERVED_FILES = 128
"""The files for the model processes, gRPC, and clients that are being told that there are too many.
"""


def open_files() -> int:
    """Take as many file descriptors as the system allows; how many, -1 for any number."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def most_connections(files: int) -> int:
    """Return how many clients may connect where so many file descriptors may be open."""
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return min(MOST_CONNECTIONS, max(files - RESERVED_FILES, files // 2))


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
        try:
            for _ in range(AT_ONCE):
                client, _ = self._socket.accept()
                if self._tls and self._is_full():  # it cannot be told before it has shaken hands
                    client.close()
                    continue
                client.setblocking(False)
                task = self._loop.create_task(self._start(client))
                self._starting.add(task)
                task.add_done_callback(self._starting.discard)
        except OSError as error:  # nobody waits any more, or one has left
            if error.errno in NOTHING_FREE:
                self._loop.remove_reader(self._socket)
                self._loop.call_later(PAUSE_S, self._go_on)

    def _go_on(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.add_reader(self._socket, self._take)

    def _is_full(self) -> bool:
        server = self._server
        return len(server.connections) + len(self._starting) >= server.limits.connections

    async def _start(self, client: socket.socket) -> None:
        limit_s = self._server.limits.read_s if self._tls else None
        try:
            await self._loop.connect_accepted_socket(
                self._server.connection, client, ssl=self._tls, ssl_handshake_timeout=limit_s
            )
        except OSError:  # the client left, or spoke no TLS
            client.close()
