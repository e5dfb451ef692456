"""Serve a model: processes with Triton, a front that clients talk to, and this one that watches."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import ssl
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.deploy.model_reference import exported_first, is_code, resolve
from tfdyno.jobs.holders.guard import Asked, guarded, visible_to
from tfdyno.jobs.serve._backend import check_port
from tfdyno.jobs.serve._request import Ready, ServeReporter, ServeRequest
from tfdyno.jobs.serve._supervisor import Supervisor
from tfdyno.jobs.serve._versions import Policy, Watch
from tfdyno.jobs.serve.setup import serving_python

if TYPE_CHECKING:
    import queue
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType

    from tfdyno.jobs.serve._versions import Wanted

__all__ = ["Ready", "ServeReporter", "ServeRequest", "check", "check_model", "serve"]

LOOPBACKS = {"127.0.0.1", "localhost", "::1"}


def check(request: ServeRequest) -> None:
    """Refuse what cannot be served, before any process is started; raises ``UsageError``."""
    exposed = request.host not in LOOPBACKS
    if exposed and not request.token and not request.insecure:
        raise UsageError(
            f"--host {request.host} lets others in, and there is no token",
            remedy="give one with --token-file, or --insecure where the network is trusted",
        )
    if (request.tls_cert is None) != (request.tls_key is None):
        raise UsageError("TLS needs a certificate and its key",
                         remedy="give both --tls-cert and --tls-key")  # fmt: skip
    for file in filter(None, (request.tls_cert, request.tls_key)):
        if not file.is_file():
            raise UsageError(f"there is no file {file}", remedy="check --tls-cert and --tls-key")
    if request.tls_cert and request.tls_key:
        _check_certificate(request.tls_cert, request.tls_key)
    check_port(request.host, request.port, "--port")
    if request.grpc_port:
        if request.grpc_port == request.port:
            raise UsageError(f"--port and --grpc-port are both {request.port}",
                             remedy="give each its own")  # fmt: skip
        check_port(request.host, request.grpc_port, "--grpc-port")


def _check_certificate(certificate: Path, key: Path) -> None:
    """Load them as the front will, without a question for a passphrase."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{certificate} and {key} are no certificate with its key",
            why=str(error),
            remedy="give both as PEM, the key without a passphrase",
        ) from None


def check_model(request: ServeRequest) -> tuple[Wanted, ...]:
    """Refuse a model or an address that cannot be served; raises ``UsageError``.

    Returns:
        The versions to serve as of now, the default one first.
    """
    if is_code(request.reference):
        raise exported_first(request.reference, "tfdyno serve")
    check(request)
    return Policy(reference=request.reference, versions=request.versions).now()


def serve(request: ServeRequest, told: ServeReporter) -> None:
    """Serve until SIGTERM or Ctrl-C; a second one kills what is still in flight.

    Raises:
        UsageError: The model, the address or an option cannot be served.
        ToolError: A process failed again and again.
    """
    first = check_model(request)  # before a serving environment is asked for
    python = serving_python()
    policy = Policy(reference=request.reference, versions=request.versions)
    own_name = resolve(request.reference).name
    name = request.name or re.sub(r"[^A-Za-z0-9._-]+", "-", own_name)  # as part of an address
    supervisor = Supervisor(request, told, python, name, Watch(policy, first))
    asked = Asked(visible=visible_to({}), waits=request.wait_free)
    with guarded(asked, tell=told.notice, progress=told.progress), _signals(supervisor.events):
        try:
            supervisor.run(first)
        finally:
            supervisor.end()


@contextlib.contextmanager
def _signals(events: queue.SimpleQueue[Any]) -> Iterator[None]:
    """Turn signals into events, so that none comes in the middle of something."""

    def put(number: int, _frame: FrameType | None) -> None:
        # A terminal that is closed ends what runs in it; elsewhere it means to look again.
        is_end = number == signal.SIGHUP and os.isatty(0)
        events.put(signal.SIGTERM if is_end else signal.Signals(number))

    numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
    try:
        before = {number: signal.signal(number, put) for number in numbers}
    except ValueError:  # not the main thread: whoever started it ends it
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
