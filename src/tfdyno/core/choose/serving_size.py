"""How many machines answer so many requests in time, and what that costs."""

from __future__ import annotations

from typing import Literal

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.interval import Interval
from tfdyno.core.base.units import DAY_S
from tfdyno.core.choose.hardware import Offer

HOURS_PER_MONTH = 730.0
"""365 days of 24 hours over 12."""
DAYS_PER_MONTH = HOURS_PER_MONTH / 24.0

Verdict = Literal["feasible", "too dear", "too slow", "does not fit", "no offer", "cannot run"]
Limit = Literal["rate", "host", "latency", "memory"]
Title = Literal["cheapest", "fastest", "balanced"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingGoal:
    """What has to be answered, and how fast."""

    requests_per_day: float
    p99_s: float
    """What 99 of 100 answers may take, as the client of the machine sees it; the way to the client
    is not in it."""
    peak_factor: float = 3.0
    """Rate of the busiest time over the mean of the day."""
    rows_per_request: int = 1
    spare_machines: int = 0
    """Machines beyond those that the peak needs."""
    budget_usd: float = 0.0
    """A month; 0: none."""

    @property
    def mean_per_s(self) -> float:
        """Requests, over the day."""
        return self.requests_per_day / DAY_S

    @property
    def peak_per_s(self) -> float:
        """Requests, at the busiest time."""
        return self.mean_per_s * self.peak_factor


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingOverhead:
    """What a request costs beside the model, on the processor of the machine."""

    call_s: float
    """The time of every batch while the model waits: handing it over and taking the answer back."""
    front_request_s: float
    """The time of every request in the front that clients talk to: one process, one request at a
    time."""
    front_number_s: float
    """The time of every number of a request, where it comes as JSON."""
    front_most_busy_ratio: float
    """Share of the time that the front may be busy at the peak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a request meets on one replica at one rate; milliseconds belong to the view."""

    rate_per_s: float
    """Requests to this replica."""
    p50_s: float
    p99_s: float
    p99_high_s: float
    """The same where the model takes as long as the high end of its range."""
    busy_ratio: float
    """Share of the time that the GPU has a batch."""
    utilisation_ratio: float
    """The share of the greatest rate at which p99 is still kept."""
    mean_batch: float
    """Rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One server process with one GPU, and what it can do."""

    gpu: str
    gpu_name: str
    latency_s: dict[int, Interval]
    """Rows of a batch to the seconds of the model alone."""
    latency_source: str
    """``estimated`` or ``measured``."""
    max_batch_size: int
    """Rows."""
    max_delay_s: float
    most_per_s: float
    """Requests at which p99 is just kept, by the high end of the latency; 0: it never is."""
    host_s: float
    """The time of a request in the front."""
    bound_by: Limit
    """What keeps it from more."""
    reason: str
    fits: bool = True
    runs: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCandidate:
    """One offer with as many machines as the peak needs."""

    replica: Replica
    offer: Offer | None
    machines: int
    """Machines with the spare ones; 0: no number of them is enough."""
    count: int
    """GPUs of all machines, each with a replica."""
    at_peak: Answered | None
    at_mean: Answered | None
    usd_per_month: float | None
    usd_per_million: float | None
    """The price of a million requests; None where no price is known."""
    verdict: Verdict
    reason: str
    pareto: bool = False

    @property
    def slug(self) -> str:
        """A name that no other candidate has."""
        return f"{self.replica.gpu} {self.offer.slug if self.offer else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPick:
    """A named choice with its reason in words."""

    title: Title
    candidate: ServingCandidate
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyCurve:
    """What requests meet on one replica as their rate rises."""

    gpu: str
    gpu_name: str
    rate_per_s: tuple[float, ...]
    p50_s: tuple[float, ...]
    p99_s: tuple[float, ...]
    p99_high_s: tuple[float, ...]
    most_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaling:
    """What an autoscaler needs to know; the deployment files are made from it."""

    target_requests_per_s: float
    """The rate of one replica beyond which more of them are started."""
    min_replicas: int
    max_replicas: int
    target_utilisation_ratio: float
    """The share of the rate at which p99 is just kept."""
    max_batch_size: int
    max_delay_s: float
    p99_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSize:
    """The answer: ranking, picks, what an autoscaler needs, and what was assumed."""

    title: str
    reference: str
    headline: str
    goal: ServingGoal
    precision: str
    execution: str
    ranking: tuple[ServingCandidate, ...]
    picks: tuple[ServingPick, ...]
    autoscaling: Autoscaling | None
    """How the balanced pick scales; None where nothing is feasible."""
    assumptions: dict[str, str]
    sources: tuple[str, ...]
    notes: tuple[str, ...]
    curves: tuple[LatencyCurve, ...]
    """The curves of the cards that were picked."""
    catalogue_date: str
    made_on: str

    def pick(self, title: Title) -> ServingPick | None:
        """Return the pick of that name; None where nothing qualifies."""
        return next((one for one in self.picks if one.title == title), None)
