"""The port that a process of a cluster is called at, and the lines of JSON that are said there."""

from __future__ import annotations

import contextlib
import errno
import json
import socket
import time
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import Failure, OSErrorsAs, TfdynoError, ToolError
from tfdyno.core.cluster.cluster import LOOPBACK, host_of, port_of
from tfdyno.core.messages.wire import decode, encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.cluster.cluster import ProcessRank

LOOPBACK_6 = "::1"
LOOPBACKS = (LOOPBACK, LOOPBACK_6, "localhost")
"""Processes of one machine listen to nobody else."""
HELLO_S = 5.0
"""The time for a line to be taken, and for a stranger to say who it is."""
MOST_BYTES = 1 << 22


def worker(rank: int) -> str:
    """Return what people call it."""
    return f"worker {rank}"


def listening(process: ProcessRank) -> socket.socket:
    """Return a socket that listens on this process' port; raises ``ToolError``."""
    listener = bound(process)
    try:
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise _no_port(process, error) from None
    return listener


def bound(process: ProcessRank) -> socket.socket:
    """Return a socket on this process' port that does not listen yet; raises ``ToolError``.

    It is one of loopback alone where all are on this machine.
    """
    host, port = host_of(process.own), port_of(process.own)
    is_dual = socket.has_dualstack_ipv6() and host not in LOOPBACKS
    is_6 = is_dual or host == LOOPBACK_6
    place = (LOOPBACK_6 if host == LOOPBACK_6 else LOOPBACK) if host in LOOPBACKS else ""
    with contextlib.ExitStack() as stack:
        try:
            found = stack.enter_context(
                socket.socket(socket.AF_INET6 if is_6 else socket.AF_INET, socket.SOCK_STREAM)
            )
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if is_6:
                found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(not is_dual))
            found.bind((place, port))
        except OSError as error:
            raise _no_port(process, error) from None
        stack.pop_all()
        return found


def _no_port(process: ProcessRank, error: OSError) -> ToolError:
    port = port_of(process.own)
    if error.errno == errno.EADDRINUSE:
        return ToolError(
            f"port {port} of {worker(process.rank)} is taken",
            why=f"another program on {socket.gethostname()} listens there",
            remedy="end it, or choose another port with --port",
        )
    what = f"{worker(process.rank)} cannot listen on port {port}"
    return ToolError(what, why=error.strerror or str(error))


def send(connection: socket.socket, message: Mapping[str, Any], name: str) -> None:
    """Write one line; raises ``ToolError`` where who is called ``name`` has hung up."""
    with OSErrorsAs(ToolError, f"{name} does not answer any more"):
        put(connection, message)


def put(connection: socket.socket, message: Mapping[str, Any]) -> None:
    """Write one line; raises ``OSError``."""
    connection.settimeout(HELLO_S)
    connection.sendall(encode(message).encode() + b"\n")


def received(connection: socket.socket, wait_s: float) -> dict[str, Any]:
    """Receive one line; raises ``ToolError`` where it is none, ``OSError`` where nothing comes.

    Who hangs up in the middle of it, or before, is a ``ConnectionError``.
    """
    until_s, found = time.monotonic() + wait_s, b""
    while not found.endswith(b"\n"):
        connection.settimeout(max(0.01, until_s - time.monotonic()))
        # No more than the line is taken: the next one may be there already.
        there = connection.recv(65536, socket.MSG_PEEK)
        part = connection.recv(there.find(b"\n") + 1 or len(there)) if there else there
        found += part
        if not part:
            raise ConnectionAbortedError("the line was cut")
        if len(found) > MOST_BYTES:
            raise ToolError("the line is too long")
    try:
        answer = json.loads(found)
    except ValueError:
        raise ToolError("it is no JSON") from None
    if not isinstance(answer, dict):
        raise ToolError("it is no message")
    return answer


def fault_in(answer: Mapping[str, Any]) -> TfdynoError | None:
    """Return the error that a line tells, whatever a stranger writes; None where there is none."""
    if "fault" not in answer:
        return None
    try:
        return decode(answer["fault"], Failure).error
    except (TypeError, AttributeError):
        return ToolError("another worker failed")
