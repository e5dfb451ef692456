"""Whether every node reaches every other one, and how much a connection between them carries."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import ToolError
from tfdyno.core.cluster.cluster import host_of, port_of
from tfdyno.engines.rendezvous.rendezvous_line import HELLO_S, LOOPBACKS, listening, put, received

if TYPE_CHECKING:
    from tfdyno.core.cluster.cluster import ProcessRank

CALL_S = 5.0
"""The time for a connection: what a firewall drops is never answered."""
CHUNK_BYTES = 1 << 20
MOST_STREAM_BYTES = 256 << 20
STREAM_S = 1.0
TICK_S = 0.1
LAST_S = 60.0
"""The time for what is on its way to arrive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """How one call ended."""

    connect_s: float | None
    error: str = ""


class Ear:
    """Listens on the port of a process, and on one that the system chooses, until it is closed."""

    def __init__(self, process: ProcessRank, token: str) -> None:
        """Begin; raises ``ToolError`` where the port is taken."""
        self._process, self._token = process, token
        self._over = threading.Event()
        self._listeners = [listening(process)]
        try:
            self._listeners.append(_anywhere(process))
        except OSError as error:
            self._listeners[0].close()
            raise ToolError("no port can be listened on", why=str(error)) from None
        self.port: int = self._listeners[1].getsockname()[1]
        """The one that the system chose."""
        self._listen = threading.Thread(target=self._serve, daemon=True)
        self._listen.start()

    def close(self) -> None:
        """Stop listening."""
        self._over.set()
        self._listen.join()
        for listener in self._listeners:
            listener.close()

    def _serve(self) -> None:
        while not self._over.is_set():
            ready, _, _ = select.select(self._listeners, [], [], TICK_S)
            for listener in ready:
                with contextlib.suppress(OSError):
                    line, _ = listener.accept()
                    thread = threading.Thread(target=self._answer, args=(line,), daemon=True)
                    thread.start()

    def _answer(self, line: socket.socket) -> None:
        with contextlib.suppress(OSError, ToolError), contextlib.closing(line):
            asked = received(line, HELLO_S)
            if asked.get("token") != self._token:
                return
            put(line, {"rank": self._process.rank, "token": self._token})
            if asked.get("want") == "stream":
                put(line, _drained(line))


def reach(address: str, token: str, rank: int) -> Reached:
    """Call a port of another node, and look whether it is that node which answers.

    Args:
        address: ``host:port``.
        token: That all processes of this check know.
        rank: Whose port it should be.
    """
    began_s = time.perf_counter()
    try:
        with socket.create_connection((host_of(address), port_of(address)), CALL_S) as line:
            took_s = time.perf_counter() - began_s
            put(line, {"token": token, "want": "hello"})
            answer = received(line, HELLO_S)
    except TimeoutError:
        return Reached(connect_s=None, error=f"no answer within {CALL_S:g} s")
    except UnicodeError:
        return Reached(connect_s=None, error="there can be no such host")
    except (OSError, ToolError) as error:
        why = getattr(error, "strerror", "") or str(error)
        return Reached(connect_s=None, error=why)
    if answer.get("token") != token or answer.get("rank") != rank:
        there = f"worker {answer.get('rank')}" if answer.get("token") == token else "something else"
        return Reached(connect_s=None, error=f"{there} answers there")
    return Reached(connect_s=took_s)


def stream_bytes_per_s(address: str, token: str) -> float:
    """Send to another node for a second, and hear how fast it arrived; raises ``ToolError``."""
    try:
        with socket.create_connection((host_of(address), port_of(address)), CALL_S) as line:
            put(line, {"token": token, "want": "stream"})
            received(line, HELLO_S)
            _pour(line)
            told = received(line, LAST_S)
        return float(told["bytes"]) / max(1e-9, float(told["s"]))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ToolError(f"nothing can be sent to {address}", why=str(error)) from None


def _pour(line: socket.socket) -> None:
    chunk, sent, until_s = bytes(CHUNK_BYTES), 0, time.monotonic() + STREAM_S
    line.settimeout(LAST_S)
    while sent < MOST_STREAM_BYTES and time.monotonic() < until_s:
        line.sendall(chunk)
        sent += len(chunk)
    line.shutdown(socket.SHUT_WR)


def _drained(line: socket.socket) -> dict[str, Any]:
    """Take all that comes; bytes, and seconds since the first of them."""
    line.settimeout(LAST_S)
    buffer, count, began_s = bytearray(CHUNK_BYTES), 0, 0.0
    while part := line.recv_into(buffer):
        began_s = began_s or time.perf_counter()
        count += part
    return {"bytes": count, "s": time.perf_counter() - began_s if began_s else 0.0}


def _anywhere(process: ProcessRank) -> socket.socket:
    """Return a listener on a port that the system chooses, as NCCL's are."""
    host = host_of(process.own)
    is_6 = socket.has_dualstack_ipv6() and host not in LOOPBACKS
    found = socket.socket(socket.AF_INET6 if is_6 or host == "::1" else socket.AF_INET)
    try:
        if is_6:
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        found.bind((host if host in LOOPBACKS and host != "localhost" else "", 0))
        found.listen(64)
    except OSError:
        found.close()
        raise
    return found
