"""Where Triton is asked: at a socket in a folder of this user's own, or at a port of this machine.

Every user of a machine can reach its ports, and read Triton's command line with any key in it. A
socket in a folder that only its owner may enter is open to nobody else.
"""

from __future__ import annotations

import http.client
import socket

SOCKET = "unix:"
LOOPBACK = "127.0.0.1"
NO_PORT = 1
"""What Triton is told beside a socket; it is not used."""


def host_and_port(address: str) -> tuple[str, int]:
    """Return the address as Triton is told it."""
    if address.startswith(SOCKET):
        return address, NO_PORT
    host, _, port = address.rpartition(":")
    return host, int(port)


def socket_path(address: str) -> str:
    """Return the socket's path; empty for a port."""
    return address.removeprefix(SOCKET) if address.startswith(SOCKET) else ""


def connection(address: str, *, timeout_s: float) -> http.client.HTTPConnection:
    """Return what speaks HTTP there; it connects with its first request."""
    if path := socket_path(address):
        return _OverSocket(path, timeout_s)
    host, port = host_and_port(address)
    return http.client.HTTPConnection(host, port, timeout=timeout_s)


class _OverSocket(http.client.HTTPConnection):
    """HTTP over a socket of the file system."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__(LOOPBACK, timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(self._path)
        except OSError:
            self.close()
            raise
