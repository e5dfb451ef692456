"""What is asked of a server, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tfdyno.core.messages.serve import ServedBatching, SignatureFacts
from tfdyno.core.recipe.retreat import Retreat
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.serve._versions import LATEST

LONGEST_WAIT_MS = 10_000.0
"""The longest wait of a request, where nothing is promised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeRequest:
    """What is served, where and how."""

    reference: str
    versions: str = LATEST
    """``latest``, ``all`` or numbers with commas."""
    name: str = ""
    """The name in the address; empty: the reference's own."""
    host: str = "127.0.0.1"
    port: int = 8501
    grpc_port: int | None = None
    max_batch: int = 64
    max_delay_ms: float = 2.0
    p99_ms: float | None = None
    """Batching is chosen so that 99 of 100 answers take no longer."""
    requests_per_s: float | None = None
    """That come then; None: as many as the model can answer."""
    max_queue: int = 1024
    deadline_ms: float | None = None
    """None: ``p99_ms`` where the model can keep it, else ``LONGEST_WAIT_MS``."""
    max_body_bytes: int = 32 * 1024 * 1024
    read_timeout_s: float = 10.0
    token: str = ""
    insecure: bool = False
    tls_cert: Path | None = None
    tls_key: Path | None = None
    threads: int | None = None
    retreat: bool = True
    """Whether a version that XLA fails to compile is started again with less of XLA."""
    log: Path | None = None
    wait_free: bool = False
    """Whether it waits until nobody else is on the cards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What a server says when it answers."""

    url: str
    """The address of the model, to which ``:predict`` is added."""
    name: str
    versions: tuple[int, ...]
    grpc_port: int | None
    batching: ServedBatching
    signatures: Mapping[str, SignatureFacts]
    start_s: float
    retreats: tuple[Retreat, ...] = ()
    """Steps back from compiles that failed inside XLA."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeReporter:
    """Who hears of what."""

    progress: Callable[[str], None] = silent
    """Stages until it answers."""
    ready: Callable[[Ready], None] = lambda _ready: None
    notice: Callable[[str], None] = silent
    """What happens later: another version, a restart."""
