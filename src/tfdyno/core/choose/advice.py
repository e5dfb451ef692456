"""Ranked GPUs and offers for a run."""

from __future__ import annotations

import math
from typing import Literal

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.estimate import Estimate
from tfdyno.core.choose.hardware import UNKNOWN_PRICE_RANGE, Offer, PriceRange
from tfdyno.core.choose.scale_out import ScaleOut
from tfdyno.core.measure.feed import Feeding

Verdict = Literal["feasible", "too late", "too dear", "does not fit", "no offer", "cannot run"]
Scenario = Literal["develop", "research", "industrial", "edge", "serve"]
Title = Literal["cheapest", "fastest", "balanced"]
HoursKind = Literal[
    "steps", "data", "compile", "validation", "checkpoints", "interruptions", "start"
]
"""What a run spends hours on; ``data``: waiting for them beyond the step's own time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """What the tool assumes where the user says nothing; each number is printed when it is used."""

    spot_overhead_ratio: float
    """Extra hours on spot capacity for restarts: 0.08 means 8 % more."""
    electricity_usd_per_kwh: float
    """Price of energy for a card that the user owns."""
    default_samples: int
    """Samples in a run whose length nobody named."""
    default_batch_size: int
    """Batch where neither the user nor the script names one."""
    start_up_s: float = 0.0
    """The time from the order of a rented machine to the first line of the script; it is paid."""
    graph_build_s: float = 0.0
    """Building the graph before the first step, for every GPU, where XLA does not compile."""
    vcpu_core_ratio: float = 1.0
    """Work of a vCPU, which is one of two hardware threads, over that of a whole core."""
    offer_cpu_ratio: float = 1.0
    """Speed of an offer's CPU over that of the machine where the input was measured, at the least;
    at the most its inverse."""
    card_life_h: float = 26_280.0
    """The hours for which a bought card is used."""
    run_every_h: float = 24.0
    """A shorter run is not started more often than once in these hours, year in, year out."""
    checkpoint_bytes_per_s: float = math.inf
    """Speed at which Keras writes a checkpoint, from the card to a disk."""
    checkpoint_speed_ratio: float = 1.0
    """The lowest speed over that, and that over the highest."""
    feed_loss_ratio: float = 0.0
    """Samples per second that an input pipeline loses with each doubling of the CPUs beyond those
    it was measured with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How much work the user wants done and within which limits."""

    steps: int
    """Optimizer steps on one replica with its own batch."""
    samples: int
    """Samples in the whole run on one replica (steps x batch)."""
    samples_per_epoch: int
    epochs: int
    deadline_h: float
    """0: none."""
    budget_usd: float
    """0: none."""
    scenario: Scenario
    holds: Literal["batch per replica", "global batch"]
    length_source: str = ""
    """Who named the length, in words: ``as asked``, ``from the script``, ``assumed``."""
    validation_samples: int = 0
    """Samples of one pass over the validation data; 0: none is counted."""
    validation_passes: int = 0
    checkpoint_bytes: float = 0.0
    """Bytes of all checkpoints that the run writes, at the most."""
    fewest_checkpoint_bytes: float = 0.0
    """That are less where only the best model is kept."""
    length: Literal["samples", "steps"] = "samples"
    """What every row has in common: replicas share the samples, or each row takes all the steps."""
    fits: int = 1
    """Calls of ``fit`` that the run is made of; steps, samples and epochs are those of all."""


Decider = Literal["", "price", "speed", "price and speed"]
Doubt = Literal["", "time", "price", "time and price"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostOrder:
    """What puts one candidate before another that costs as much or more."""

    tied: bool
    """Whether each one's cost lies within the other's range: which is cheaper cannot be told."""
    unsure_by: Doubt = ""
    """Whose range makes the tie; empty: there is none, or both cost the same."""
    decided_by: Decider = ""
    """Empty: it is a tie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoursPart:
    """A part of the hours of a run."""

    kind: HoursKind
    hours: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One offer (or a card without one) with what the run would need on it."""

    gpu: str
    gpu_name: str
    count: int
    offer: Offer | None
    estimate: Estimate
    steps: int
    """Optimizer steps that the run takes here."""
    hours: Interval
    cost_usd: Interval | None
    """Low: the fewest hours at the lowest price of ``price_range``; high: the most at the highest.
    None where no price is known."""
    usd_per_epoch: Interval | None
    energy_kwh: Interval
    verdict: Verdict
    tensorflow: str
    """How the user's TensorFlow wheel runs on it: native, jit, cannot, unknown; with versions."""
    reason: str
    """Why this row is as it is, in words."""
    pareto: bool
    hours_parts: tuple[HoursPart, ...] = ()
    """What ``hours`` is the sum of; empty: it is not known by parts."""
    feeding: Feeding | None = None
    """What the offer's CPUs give its GPUs, which the estimate then has in it; None: no input
    pipeline was measured, or nobody says how many CPUs there are."""
    price_range: PriceRange = UNKNOWN_PRICE_RANGE
    launch_price_usd: float = 0.0
    """What the card cost when it came out; 0: not known."""
    to_first: CostOrder | None = None
    """How the first of the feasible ones stands to this one; None: it is that, or not feasible."""

    @property
    def spot(self) -> bool:
        """Whether the offer can be taken away at any time."""
        return self.offer is not None and self.offer.spot

    @property
    def slug(self) -> str:
        """A name that no other candidate has: the offer, or the card where there is none."""
        return f"{self.gpu} {self.count} {self.offer.slug if self.offer else ''}"

    def part_h(self, kind: HoursKind) -> Interval | None:
        """Return the hours of a kind; None where none are counted."""
        return next((part.hours for part in self.hours_parts if part.kind == kind), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """A named choice with its reason in words."""

    title: Title
    candidate: Candidate
    reason: str
    ties: tuple[str, ...] = ()
    """Candidates by ``slug`` that the ranges do not tell from it, where it was picked for: in cost,
    in hours, or, for the balanced one, in both."""
    runner_up: str = ""
    """The next dearer one on another card or number of them, by ``slug``; of the cheapest alone."""
    decided_by: Decider = ""
    """What puts it before that; empty: a tie, or there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something that would change the answer, and how."""

    condition: str
    consequence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The answer: ranking, picks, what would change them, and what was assumed."""

    title: str
    """The model and its workload reference."""
    headline: str
    run: Run
    ranking: tuple[Candidate, ...]
    """Feasible ones first, by cost then hours; then too late, too dear, does not fit."""
    picks: tuple[Pick, ...]
    changes: tuple[Change, ...]
    buy_or_rent: tuple[Change, ...]
    assumptions: dict[str, str]
    sources: tuple[str, ...]
    catalogue_date: str
    made_on: str
    exact: bool
    """Whether memory came from the compiler for every ranked row that runs under XLA."""
    notes: tuple[str, ...] = ()
    """What was left out or went another way, one sentence each."""
    open_fits: tuple[str, ...] = ()
    """Cards by name that may hold the step or not, which changes the picks: no compile has settled
    it."""
    scaling: tuple[ScaleOut, ...] = ()
    """What more of the recommended card bring; empty where it cannot train with others."""

    def pick(self, title: Title) -> Pick | None:
        """Return the pick of that name; None where nothing qualifies."""
        return next((pick for pick in self.picks if pick.title == title), None)
