"""The processes of a server: what the model's and the front are told, and what they say.

They live as long as they serve: each line on their standard input and output is one of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tfdyno.core.base.errors import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One input or output of a signature."""

    name: str
    dtype: str
    """The type as numpy names it; ``bytes`` for strings."""
    shape: tuple[int | None, ...] | None
    """The shape with the batch; None: the signature does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureFacts:
    """A signature as the front calls it."""

    triton_model: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    batched: bool
    """Whether requests can be put together."""
    call_s: float = 0.0
    """A call for one sample, before any client asked; 0.0: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedBatching:
    """How many requests are put together, and how long the first waits for the others."""

    max_batch_size: int
    max_delay_ms: float
    reason: str = ""
    holds: bool = False
    """False: nothing is promised, or nobody knows."""
    unbatched: Mapping[str, str] = field(default_factory=dict)
    """Why requests are not put together, by signature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBatching(ServedBatching):
    """The same, chosen by what was measured."""

    latency_s_by_batch: Mapping[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a model that was served before turned out to be."""

    signatures: Mapping[str, SignatureFacts]
    batching: ServedBatching | MeasuredBatching


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeModel:
    """The one line that a model process is told."""

    model: Path
    name: str
    scratch: Path
    """Its folder, which it removes."""
    address: str
    max_batch_size: int
    max_delay_ms: float
    p99_ms: float | None = None
    """Batching is chosen so that 99 of 100 answers take no longer."""
    requests_per_s: float | None = None
    beside_s: float = 0.0
    """Of each call, for what is beside the model."""
    threads_intra: int | None = None
    known: Known | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReady:
    """A model process answers."""

    event: Literal["ready"] = "ready"
    address: str
    signatures: Mapping[str, SignatureFacts]
    batching: ServedBatching | MeasuredBatching
    unanswered: tuple[str, ...]
    """What signatures said that did not answer made-up input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Failure):
    """A process does not get to serve."""

    event: Literal["failed"] = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """The front has its ports."""

    event: Literal["listening"] = "listening"
    url: str
    port: int
    grpc_port: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInUse:
    """The front answers by the table that it was given."""

    event: Literal["serving"] = "serving"
    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """The front has nothing under way at an address that it no longer uses."""

    event: Literal["idle"] = "idle"
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """The front has answered all."""

    event: Literal["drained"] = "drained"


Said = ModelReady | Failed | Listening | TableInUse | Idle | Drained
EVENTS: dict[str, type[Said]] = {
    "ready": ModelReady,
    "failed": Failed,
    "listening": Listening,
    "serving": TableInUse,
    "idle": Idle,
    "drained": Drained,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontSettings:
    """The first line that the front is told."""

    host: str = "127.0.0.1"
    port: int = 8501
    grpc_port: int | None = None
    max_queue: int = 1024
    deadline_ms: float | None = None
    max_body_bytes: int = 32 << 20
    read_timeout_s: float = 10.0
    token: str | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    max_batch_size: int = 64
    max_delay_ms: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFacts:
    """Where a version answers."""

    address: str
    signatures: Mapping[str, SignatureFacts]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The versions of a model."""

    default: str = ""
    versions: Mapping[str, VersionFacts] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontCommand:
    """Each further line: the whole table of what is to answer, or to end when all is answered."""

    command: Literal["serve", "drain"]
    id: int = 0
    models: Mapping[str, ModelFacts] = field(default_factory=dict)
