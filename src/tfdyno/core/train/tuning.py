"""A tuning: its trials, what became of each, the fastest recipe and the proof that it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from tfdyno.core.base.interval import Interval
from tfdyno.core.measure.fix_proof import FixProof
from tfdyno.core.measure.software import Backend, DeviceKind
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.recipe.retreat import Retreat, as_run
from tfdyno.core.train.search_space import SearchSpace

TrialStatus = Literal[
    "measured", "pruned", "not_fit", "hopeless", "same", "failed", "running", "planned"
]
"""``measured``: all its runs; ``pruned``: ended after some of them, surely slower; ``not_fit``:
ran out of memory, or surely would; ``hopeless``: surely slower, not run; ``same``: as a trial
before; ``failed``: the workload cannot be run so; ``planned``: would be measured."""
STATUSES: tuple[TrialStatus, ...] = get_args(TrialStatus)
TuningEnd = Literal["trials", "covered", "stopped", "planned"]
"""Why no more trials: as many as asked for, none left in the space, ended from outside, a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEstimate:
    """What was expected of a trial before it ran."""

    made_by: Literal["estimate", "law", "trials"]
    """``estimate``: of ``tfdyno estimate``; ``law``: a line through trials of this study;
    ``trials``: what others of them did."""
    samples_per_s: Interval | None = None
    """None: nothing is known."""
    memory_bytes: Interval | None = None
    limit_bytes: float = 0.0
    """What there is of memory; 0: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One recipe, and what became of it."""

    number: int
    recipe: Recipe
    changes: dict[str, str] = field(default_factory=dict)
    """Settings that are not as the starting recipe has them."""
    values: dict[str, str | int | bool | None] = field(default_factory=dict)
    """Its place in the search space."""
    status: TrialStatus = "running"
    ran: bool = False
    """Whether it was started, to its end or not: these are counted."""
    reason: str = ""
    """One sentence: why it is not measured, or not to its end."""
    is_refused: bool = False
    """Whether it failed because the workload itself cannot be run so."""
    estimate: TrialEstimate | None = None
    batch_size: int = 0
    """Samples of each replica; 0: not known."""
    changes_batch: bool = False
    """Whether an update of the weights takes other samples than under the starting recipe."""
    rates_per_s: tuple[float, ...] = ()
    """Samples per second of each run, over all replicas."""
    beside_s: tuple[float, ...] = ()
    """The time of the small computation beside the steps of each run; empty where there is none."""
    samples_per_s: float = 0.0
    """The middle of its runs; 0: it was not measured."""
    interval_per_s: tuple[float, float] = (0.0, 0.0)
    """The interval of ``samples_per_s``, at ``Tuning.confidence_ratio``; both 0: not known."""
    peak_memory_bytes: int = 0
    measurement: str = ""
    """ID in the folder of results."""
    same_as: int | None = None
    """Number of the trial that it equals."""
    where: str = ""
    """Node that measured it; empty: this machine."""
    retreats: tuple[Retreat, ...] = ()
    """Steps back from compiles that failed inside XLA."""

    @property
    def ran_as(self) -> Recipe:
        """The recipe that ran: without XLA where XLA failed to compile."""
        return as_run(self.recipe, self.retreats)

    @property
    def is_judged(self) -> bool:
        """Whether its throughput counts: all its runs ended."""
        return self.status == "measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What came out of a study."""

    reference: str
    """The workload as typed."""
    title: str = ""
    """The model's own name; empty: nothing was run."""
    backend: Backend = "tensorflow"
    """Of Keras."""
    start: Recipe
    space: SearchSpace
    trials: tuple[Trial, ...]
    """The first is the starting recipe."""
    best: int | None = None
    """Number of the fastest trial, or of one that the noise does not tell from it and that changes
    less; None: none was measured."""
    proof: FixProof | None = None
    """The fastest against the start, in turns; None: it is the start itself, or not made yet."""
    recipe: Recipe
    """The answer: the fastest where that is proven, else the start."""
    device: DeviceKind | None = None
    device_name: str = ""
    planned_for: str = ""
    """Card that trials were only estimated for; empty: they were measured."""
    update_samples: int = 0
    """Samples of an update under the start, over all replicas; 0: not known."""
    runs: int = 0
    """The runs of each trial that is measured to its end."""
    asked_trials: int = 0
    left: int = 0
    """Combinations of the space of which nothing is known."""
    ended: TuningEnd = "trials"
    confidence_ratio: float
    """The confidence of intervals, and of what is called sure."""
    spread_ratio: float = 0.0
    """Standard deviation from run to run of the same trial; 0: not known."""
    engine: Literal["local", "ray"] = "local"
    uncompared: str = ""
    """Why the losses of no two recipes can be compared; empty: they can."""
    notes: tuple[str, ...] = ()

    def trial(self, number: int) -> Trial:
        """Return the trial of this number; raises ``StopIteration`` where there is none."""
        return next(one for one in self.trials if one.number == number)

    def counts(self) -> dict[TrialStatus, int]:
        """Return how many trials ended in each way; ways without any are left out."""
        found = {name: sum(one.status == name for one in self.trials) for name in STATUSES}
        return {name: count for name, count in found.items() if count}
