"""The server on the loopback, from its socket to Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tfdyno.core.base.errors import ToolError
from tfdyno.ui.app import app_of
from tfdyno.ui.guard import error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tfdyno.core.choose.workload import Workload

HOST = "127.0.0.1"
USUAL_PORT = 8710
LOOK_S = 0.5
MOST_CLIENTS = 256
"""Connections at once; whoever comes later is told to come again."""


def serve(
    given: Workload | None, *, folder: Path, port: int | None, ready: Callable[[str], None]
) -> None:
    """Serve until Ctrl-C.

    Args:
        given: The workload of the command line.
        folder: Whose results are shown.
        port: To listen on; 0: any that is free; None: the usual one, or any if it is taken.
        ready: Called with the address, which holds the token, once clients are heard.

    Raises:
        ToolError: The port is taken.
    """
    token = secrets.token_urlsafe(32)
    listener = _bound(USUAL_PORT if port is None else port, or_any=port is None)
    with contextlib.closing(listener):
        number = listener.getsockname()[1]
        server = _Server(
            uvicorn.Config(
                app_of(given, folder=folder, token=token, port=number),
                http=_Protocol,
                loop="asyncio",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=20,
                timeout_graceful_shutdown=1,
            ),
        )
        server.told = lambda: ready(f"http://{HOST}:{number}/#token={token}")
        server.run(sockets=[listener])


class _Server(uvicorn.Server):
    told: Callable[[], None]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Say where it listens once it does."""
        await super().startup(sockets=sockets)
        self.told()

    async def main_loop(self) -> None:
        """Look twice a second whether it shall end; uvicorn itself looks ten times."""
        turn = 0
        while not await self.on_tick(turn):
            turn += 10  # at each tenth turn it renews the date that answers carry
            await asyncio.sleep(LOOK_S)


class _Protocol(H11Protocol):
    """HTTP/1.1 whose own refusals have the form of all other errors."""

    def handle_events(self) -> None:
        """Answer what has come; where too many are connected, with a refusal."""
        self.app = self.config.loaded_app
        if len(self.connections) > MOST_CLIENTS:
            full = error(503, f"{MOST_CLIENTS} connections are open", "ask again later")
            full.headers["connection"] = "close"
            self.app = full
        super().handle_events()

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are no request."""
        body = bytes(error(400, msg).body)
        head = (
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


def _bound(port: int, *, or_any: bool) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError as error:
        listener.close()
        if or_any:
            return _bound(0, or_any=False)
        raise ToolError(
            f"port {port} cannot be listened on",
            why=error.strerror or str(error),
            remedy="name another with --port, or leave it out",
        ) from None
    return listener
