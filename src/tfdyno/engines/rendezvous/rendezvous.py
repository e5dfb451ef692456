"""The processes of a training meet before TensorFlow starts, so that what is wrong has a name.

TensorFlow waits an hour for a worker that is missing, and says little of one that is there twice.
Worker 0 listens on the port that its TensorFlow will use a moment later; the others call it, say
who they are and what they run, hear how it is trained, and check what they heard. One line of JSON
each way, so that nothing is run of what arrives.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError, failure_of
from tfdyno.core.cluster.cluster import ProcessRank, host_of, port_of
from tfdyno.engines.rendezvous.rendezvous_line import (
    HELLO_S,
    bound,
    fault_in,
    listening,
    put,
    received,
    send,
    worker,
)

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

Tell = Callable[[str], object]
Facts = Mapping[str, str]
"""What is compared between all: versions."""
Lines = Mapping[int, socket.socket]
"""Lines from worker 0 to the others by rank."""

WAIT_S = 600.0
"""The time for all to be there: images are pulled, queues are waited in."""
ANSWER_S = 120.0
"""The time for one that has come to answer."""
RETRY_S = 0.5


@dataclass(slots=True, kw_only=True)
class _Peer:
    """One that has called worker 0."""

    connection: socket.socket
    rank: int
    host: str
    process_id: int
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"{worker(self.rank)} ({self.place})"

    @property
    def place(self) -> str:
        """Where it runs, in words."""
        return f"process {self.process_id} on {self.host}"

    @property
    def is_gone(self) -> bool:
        """Whether it has hung up."""
        self.connection.settimeout(0)  # with one, Python waits whatever the flag says
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True


def check_port(process: ProcessRank) -> None:
    """Refuse to go on where something listens on this process' port; raises ``ToolError``.

    It does not listen itself: another process that calls at this moment would be hung up.
    """
    bound(process).close()


def serve_rendezvous(
    process: ProcessRank,
    facts: Facts,
    message: Mapping[str, Any],
    *,
    tell: Tell,
    wait_s: float = WAIT_S,
    stay: Callable[[Lines], object] | None = None,
) -> None:
    """Wait for all others as worker 0, give them the message, and let them begin together.

    Args:
        process: Worker 0.
        facts: What this process runs, which has to be the same everywhere.
        message: What the others need to know.
        tell: Called with who is still waited for.
        wait_s: For all to be there.
        stay: Called when all have begun, while the lines to them are open; its port is free then.

    Raises:
        UsageError: One is there twice, or runs other versions.
        ToolError: One is missing, its check failed, or the port is taken.
    """
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(listening(process))
        peers: dict[int, _Peer] = {}
        stack.callback(_hang_up, peers)
        try:
            _gather(process, listener, peers, tell, wait_s, stack)
            _compare(facts, peers)
            for peer in peers.values():
                send(peer.connection, {"welcome": dict(message)}, peer.name)
            for peer in peers.values():
                _hear_checked(peer)
            for peer in peers.values():
                send(peer.connection, {"go": True}, peer.name)
            if stay:
                listener.close()
                stay({rank: peer.connection for rank, peer in peers.items()})
        except TfdynoError as error:
            for peer in peers.values():
                with contextlib.suppress(ToolError):
                    send(peer.connection, {"fault": failure_of(error)}, peer.name)
            raise


def join_rendezvous(
    process: ProcessRank,
    facts: Facts,
    check: Callable[[dict[str, Any]], object],
    *,
    tell: Tell,
    wait_s: float = WAIT_S,
    stay: Callable[[socket.socket, dict[str, Any]], object] | None = None,
) -> dict[str, Any]:
    """Call worker 0 as any other worker, check what it says, and begin when all begin.

    Args:
        process: This one.
        facts: What it runs.
        check: Raises ``TfdynoError`` where the message does not hold here.
        tell: Called with what is waited for.
        wait_s: For worker 0 to answer, and for all others to be there.
        stay: Called when all have begun, with the line to worker 0 and its message.

    Returns:
        The message of worker 0.

    Raises:
        UsageError: This one is there twice, or runs other versions.
        ToolError: Worker 0 does not answer, or somebody's check failed.
    """
    check_port(process)
    connection, message = _welcomed(process, facts, tell, wait_s)
    with contextlib.closing(connection):
        name = f"worker 0 at {process.addresses[0]}"
        try:
            check(message)
        except TfdynoError as error:
            with contextlib.suppress(ToolError):
                send(connection, {"fault": failure_of(error)}, name)
            raise
        send(connection, {"checked": True}, name)
        _from_leader(connection, "go", ANSWER_S, process)
        if stay:
            stay(connection, message)
        return message


def _hang_up(peers: Mapping[int, _Peer]) -> None:
    for peer in peers.values():
        peer.connection.close()


def _gather(
    process: ProcessRank,
    listener: socket.socket,
    peers: dict[int, _Peer],
    tell: Tell,
    wait_s: float,
    stack: contextlib.ExitStack,
) -> None:
    """Take calls until each rank has called once."""
    nonce = secrets.token_hex(8)
    mirror = _call_self(process, nonce)
    if mirror:
        stack.callback(mirror.close)
    until_s, told = time.monotonic() + wait_s, 0.0
    while missing := [r for r in range(1, process.size) if r not in peers or peers[r].is_gone]:
        now_s = time.monotonic()
        if now_s >= until_s:
            raise _nobody(process, missing, wait_s)
        if now_s >= told:
            tell(f"waiting for {_names(missing)}")
            told = now_s + 15.0
        watched = [listener, *([mirror] if mirror else [])]
        ready, _, _ = select.select(watched, [], [], min(RETRY_S, until_s - now_s))
        if mirror in ready and mirror:
            _look_into(mirror)
            mirror = None
        if listener in ready:
            with contextlib.suppress(OSError):
                _admit(process, listener.accept()[0], peers, nonce)


def _call_self(process: ProcessRank, nonce: str) -> socket.socket | None:
    """Call worker 0 at its address: another one that answers there says so."""
    try:
        connection = socket.create_connection((host_of(process.own), port_of(process.own)), HELLO_S)
        hello = {"rank": 0, "size": process.size, "host": socket.gethostname()}
    except (OSError, UnicodeError):
        return None  # its own name may not lead to it
    try:
        message = {"tfdyno": 1, **hello, "process": os.getpid(), "nonce": nonce}
        send(connection, message, worker(0))
    except ToolError:
        connection.close()
        return None
    return connection


def _look_into(mirror: socket.socket) -> None:
    """Read what came back from the own address: nothing, or the refusal of another worker 0."""
    answer: dict[str, Any] = {}
    with contextlib.suppress(OSError, ToolError), contextlib.closing(mirror):
        answer = received(mirror, HELLO_S)
    if fault := fault_in(answer):
        raise fault


def _admit(
    process: ProcessRank, connection: socket.socket, peers: dict[int, _Peer], nonce: str
) -> None:
    """Take one call; a stranger's is hung up."""
    try:
        hello = received(connection, HELLO_S)
        peer = _Peer(
            connection=connection, rank=int(hello["rank"]), host=str(hello["host"]),
            process_id=int(hello["process"]),
            facts={str(k): str(v) for k, v in (hello.get("facts") or {}).items()},
        )  # fmt: skip
        size = int(hello["size"])
    except (OSError, ToolError, KeyError, TypeError, ValueError, AttributeError):
        connection.close()
        return
    if peer.rank == 0 and hello.get("nonce") == nonce:
        connection.close()
        return
    before = peers.get(peer.rank)
    if peer.rank == 0:
        places = f"process {os.getpid()} on {socket.gethostname()}", peer.place
        error = _twice(0, *places)
    elif before and not before.is_gone:
        error = _twice(peer.rank, before.place, peer.place)
    elif size != process.size or peer.rank >= process.size:
        what = f"{worker(peer.rank)} counts {size} processes, and worker 0 counts {process.size}"
        error = UsageError(what, remedy="start them all from the same plan")
    else:
        if before:
            before.connection.close()
        peers[peer.rank] = peer
        return
    with contextlib.suppress(ToolError):
        send(connection, {"fault": failure_of(error)}, peer.name)
    connection.close()
    raise error


def _twice(rank: int, first: str, second: str) -> UsageError:
    return UsageError(
        f"{worker(rank)} is there twice",
        why=f"it is {first} and {second}",
        remedy="give each process a rank of its own, and end what is left of an earlier start",
    )


def _nobody(process: ProcessRank, missing: list[int], wait_s: float) -> ToolError:
    where = ", ".join(process.addresses[rank] for rank in missing[:4])
    return ToolError(
        f"{_names(missing)} did not come within {wait_s:.0f} s",
        why=f"worker 0 waited at {process.own} for {where}",
        remedy="look whether it started, and whether it can reach that port",
    )


def _compare(facts: Facts, peers: Mapping[int, _Peer]) -> None:
    """Refuse different versions, all of them in one sentence."""
    differences = []
    for name, here in facts.items():
        others = {r: peer.facts.get(name, "none") for r, peer in sorted(peers.items())}
        if odd := [f"{there} on {worker(r)}" for r, there in others.items() if there != here]:
            more = f" and {len(odd) - 3} more" * (len(odd) > 3)
            differences.append(f"{name} {here} on worker 0, {', '.join(odd[:3])}{more}")
    if differences:
        remedy = "install the same versions on all nodes"
        raise UsageError("the nodes do not run the same", why="; ".join(differences), remedy=remedy)


def _hear_checked(peer: _Peer) -> None:
    try:
        answer = received(peer.connection, ANSWER_S)
    except (OSError, ToolError) as error:
        what = f"{peer.name} does not answer any more"
        raise ToolError(what, why=str(error)) from None
    if fault := fault_in(answer):
        what = f"{worker(peer.rank)}: {fault.what}"
        raise type(fault)(what, why=fault.why, remedy=fault.remedy)


def _welcomed(
    process: ProcessRank, facts: Facts, tell: Tell, wait_s: float
) -> tuple[socket.socket, dict[str, Any]]:
    """Return the line to worker 0, and what it says; who hangs up before that is not there yet."""
    until_s = time.monotonic() + wait_s
    hello = {"rank": process.rank, "size": process.size, "host": socket.gethostname()}
    hello |= {"tfdyno": 1, "process": os.getpid(), "facts": dict(facts)}
    while True:
        with contextlib.ExitStack() as stack:
            connection = stack.enter_context(_called(process, tell, until_s, wait_s))
            try:
                put(connection, hello)
                tell(f"waiting for the other {process.size - 1} workers")
                # The others may come as late as this one might have.
                message: dict[str, Any] = _from_leader(connection, "welcome", wait_s, process)
            except ConnectionError:
                time.sleep(RETRY_S)
                continue
            stack.pop_all()
            return connection, message


def _called(process: ProcessRank, tell: Tell, until_s: float, wait_s: float) -> socket.socket:
    """Return the line to worker 0, as soon as it answers."""
    address, told, why = process.addresses[0], False, "it hung up"
    while time.monotonic() < until_s:
        try:
            return socket.create_connection((host_of(address), port_of(address)), HELLO_S)
        except UnicodeError:
            remedy = "name a host that there can be"
            raise UsageError(f"'{host_of(address)}' is no name of a host", remedy=remedy) from None
        except OSError as error:
            why = error.strerror or str(error)
        if not told:
            tell(f"calling worker 0 at {address}")
            told = True
        time.sleep(RETRY_S)
    raise ToolError(
        f"worker 0 does not answer at {address}",
        why=f"{worker(process.rank)} called it for {wait_s:.0f} s, and the last answer was: {why}",
        remedy="look whether it started, and whether a firewall is between",
    )


def _from_leader(connection: socket.socket, key: str, wait_s: float, process: ProcessRank) -> Value:
    """Return what worker 0 says; a line that ends before the welcome is ``ConnectionError``."""
    try:
        answer = received(connection, wait_s)
    except (OSError, ToolError) as error:
        if isinstance(error, ConnectionError) and key == "welcome":
            raise
        what = f"worker 0 at {process.addresses[0]} does not answer any more"
        remedy = "its own output says why it ended"
        raise ToolError(what, why=f"{worker(process.rank)} waited for it: {error}",
                        remedy=remedy) from None  # fmt: skip
    if fault := fault_in(answer):
        raise fault
    if key not in answer:
        raise ToolError(f"worker 0 at {process.addresses[0]} answers something else",
                        why="another program may listen there")  # fmt: skip
    return answer[key]


def _names(ranks: list[int]) -> str:
    shown = " and ".join(worker(rank) for rank in ranks[:3])
    return f"{shown} and {len(ranks) - 3} more" if len(ranks) > 3 else shown
