"""A load test of a model server: what was asked of it, every answer, and what follows from them."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.interval import Interval

LOAD_FORMAT = "tfdyno load 1"
"""First key of every document; another number is another meaning of its keys."""
TIMEOUT, CONNECTION, WRONG_ANSWER = -1, -2, -3
"""What stands in a list of codes where there is no HTTP status that counts: no answer in time, a
connection that was lost or refused, and a 200 whose body is not an answer of this model."""
ACCEPTED = 200
REFUSALS = (429, 503)
"""How a server says that it has too much to do."""
CODE_WORDS = {TIMEOUT: "timed out", CONNECTION: "connection lost", WRONG_ANSWER: "wrong answer"}
StageKind = Literal["closed", "open"]
Route = Literal["tensorflow-serving", "kserve-v2"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """One stretch of load: clients that wait for each answer, or arrivals that wait for nobody."""

    kind: StageKind = "closed"
    clients: int = 64
    """The clients of a closed loop; each has one request under way."""
    rate_per_s: float = 0.0
    """The rate of an open loop: Poisson arrivals."""
    seconds_s: float = 10.0
    """That count, after the warm-up."""
    warmup_s: float = 1.0
    timeout_s: float = 30.0
    """The time after which a request without an answer has failed."""
    seed: int = 0
    decides: bool = False
    """Whether it is the longer stretch that decides on a rate which short ones found."""

    def __post_init__(self) -> None:
        """Refuse a load that is none."""
        if self.kind == "open" and self.rate_per_s <= 0.0:
            raise ValueError(f"an open loop needs a rate above 0, got {self.rate_per_s}")
        if self.clients < 1 or self.seconds_s <= 0.0:
            raise ValueError(f"need clients and seconds, got {self.clients}, {self.seconds_s}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What a server says of itself and the system of it; empty: it does not say."""

    route: Route
    model: str
    version: str = ""
    platform: str = ""
    """Its ``Server`` header, or name and version after KServe."""
    inputs: tuple[str, ...] = ()
    """``image float32[-1,28,28,1]``."""
    outputs: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    """``4711@1764000000.12``: identifier and start of what listens at the port, on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRun:
    """One stretch of load as it was; the lists have one entry a request, in order of their end."""

    plan: LoadPlan
    began_at: str
    """Date and time, UTC."""
    length_s: float
    """The time from the first request to the last that was sent, the warm-up included."""
    start_s: tuple[float, ...] = ()
    """When the request was meant to start, since the first; in an open loop not when it was
    sent, so that a wait in the client counts as well."""
    latency_s: tuple[float, ...] = ()
    """The time from then to the last byte of the answer."""
    codes: tuple[int, ...] = ()
    """HTTP status, or below 0 as ``TIMEOUT``, ``CONNECTION``, ``WRONG_ANSWER``."""
    rows_per_request: int = 1
    batches: dict[int, int] = field(default_factory=dict)
    """Largest number of rows in a batch -> batches, by the server's own count; empty: unknown."""
    batches_are_bounds: bool = False
    """Whether the keys of ``batches`` are upper bounds of a histogram, not sizes."""
    batch_rows: int = 0
    """Rows in all those batches; 0: unknown."""
    batch_count: int = 0
    client_cpu_s: float = 0.0
    lag_p99_s: float = 0.0
    """How late the client's own loop was, 99 times in 100 less."""
    reconnects: int = 0
    """Connections that the server closed between two requests, which is its right."""
    examples: dict[int, str] = field(default_factory=dict)
    """Code -> what the first such answer said."""
    faults: tuple[str, ...] = ()
    """Why this is no measurement of that server: it changed midway, for example."""
    stopped: bool = False
    """Whether Ctrl-C ended it early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFigures:
    """What follows from one stretch; latencies are of accepted requests, with 95 % intervals.

    The upper end of one is infinite, in JSON null, where too few requests bound it.
    """

    requests: int
    """That count: begun after the warm-up."""
    accepted: int
    refused: int
    errors: dict[str, int]
    """What went wrong -> requests, the warm-up included; without refusals."""
    accepted_per_s: float
    rows_per_s: float
    p50_s: Interval | None
    p95_s: Interval | None
    p99_s: Interval | None
    p999_s: Interval | None
    worst_s: float
    refused_ratio: float
    mean_batch_rows: float
    """The mean by the server's own count; 0: unknown."""
    client_cpu_ratio: float
    """The share of one CPU."""
    client_is_limit: bool
    """Whether the client may be what is measured."""
    usd_per_million: float | None
    """The price of a million accepted requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStage:
    """One stretch of load with its figures."""

    run: StageRun
    figures: StageFigures
    holds: bool | None = None
    """Whether the server kept the promised p99 without refusals; None: nothing was promised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """A whole load test."""

    url: str
    server: ServerFacts
    stages: tuple[LoadStage, ...]
    p99_limit_s: float = 0.0
    """That was promised; 0: none."""
    knee_rate_per_s: float | None = None
    """The largest rate that kept the promise for sure in a longer stretch; None: not looked for,
    or none did."""
    usd_per_h: float | None = None
    offer: str = ""
    allows_refusals: bool = False
    stopped: bool = False
    faults: tuple[str, ...] = ()
    """Why the test failed, the worst first; empty: it did not."""
    warnings: tuple[str, ...] = ()
    machine: str = ""
    """CPUs of the machine of the client."""
    made_at: str = ""
    tfdyno: str = ""

    @property
    def failed(self) -> bool:
        """Whether its figures are worth nothing."""
        return bool(self.faults)
