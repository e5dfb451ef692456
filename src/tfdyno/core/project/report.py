"""What a project's runs brought: figures out of each step's document, changes, gains."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from tfdyno.core.project.project import ProjectRun, Status, StepRun

Basis = Literal["measured", "estimated", "exact"]
"""``exact``: counted, not timed, as a size; it has no interval and needs none."""
StepKind = Literal[
    "advise", "size", "estimate", "memory", "data", "train", "tune", "bench", "diagnose", "export",
    "models", "edge", "load", "other",
]  # fmt: skip
"""The kind of a document; ``size``: ``advise --scenario serve``; ``load``: ``bench --serve``."""
State = Literal["whole", "gone", "remade", "unreadable", "none"]
"""The state of a step's output; ``gone``: deleted by hand; ``remade``: another run's by now;
``none``: there never was one. The history keeps documents too, so that there may be one whatever
the state."""
GainVerdict = Literal["better", "worse", "no_difference", "not_compared"]
GainWay = Literal["samples", "intervals", "counts", ""]
"""What a ratio is from: the samples of two benches, the intervals of two figures, exact numbers."""
DONE: frozenset[Status] = frozenset(("finished", "reused"))
"""How a step ends that has an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFigure:
    """One number that a step stands for."""

    name: str
    """The same for the same quantity of every run: ``throughput``."""
    title: str
    value: float
    unit: str = ""
    """``s``, ``h``, ``bytes``, ``usd``, ``ratio``, ``times``; others stand behind
    the number."""
    low: float | None = None
    high: float | None = None
    """None: no interval is known."""
    confidence_ratio: float = 0.0
    """The confidence of the interval; 0: it has none."""
    basis: Basis = "measured"
    better: Literal["more", "less", ""] = ""
    of: str = ""
    """What it belongs to where a step has several: a format, a GPU."""
    place: str = ""
    """The machine it was measured on; empty: not known, or it makes no difference."""
    terms: str = ""
    """The terms under which it holds: ``64 clients``; figures of other terms are not compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that a step rests on and that differs between two runs."""

    step: str
    what: str
    """``option epochs``, ``file train.py``; ``step`` where no run before came to it; ``making``
    where nothing has changed and yet it was made again."""
    before: str = ""
    """Empty: it was not there."""
    after: str = ""
    since: str = ""
    """Id of the run that it has changed since, where that is not the run before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTold:
    """A step of a run with what its document says."""

    run: StepRun
    kind: StepKind = "other"
    state: State = "none"
    trouble: str = ""
    """Why the document, or part of it, is not read; empty: it is."""
    answer: str = ""
    """The answer in one sentence."""
    figures: tuple[KeyFigure, ...] = ()
    """The one that the step stands for first."""
    document: dict[str, Any] = field(default_factory=dict)
    log: str = ""
    """The log of a step that did not come to its end, relative to the project's folder."""
    last_lines: tuple[str, ...] = ()
    """The last lines of the log."""
    before: Status | Literal[""] = ""
    """How the step of the run before ended; empty: there was none, or it was not reached."""
    changed: tuple[Change, ...] = ()
    """What it rests on and what has changed since then."""

    @property
    def reached(self) -> bool:
        """Whether the run came to this step."""
        return bool(self.run.key) or self.run.status in (*DONE, "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gained:
    """The same figure in two runs; of a step whose output differs."""

    step: str
    figure: str
    """Its title."""
    of: str = ""
    before: KeyFigure
    after: KeyFigure
    verdict: GainVerdict
    ratio: float = 0.0
    """The ratio, above 1 where the later is better; 0: not compared."""
    interval: tuple[float, float] = (0.0, 0.0)
    """The interval of the ratio; (0, 0) where it is exact or not compared."""
    confidence_ratio: float = 0.0
    """0: exact, or not compared."""
    way: GainWay = ""
    """Empty: not compared."""
    reason: str = ""
    """What decided, or why it is not compared."""
    caveat: str = ""
    """What the ratio leaves in or takes out; always told with it."""
    since: str = ""
    """Id of the run that it is compared with, where that is not the run before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsCompared:
    """What changed from one run to a later one, and what that gained."""

    before: str
    """Its id. A step that did not come to its end there is compared with the newest run before
    that in which it did."""
    after: str
    changes: tuple[Change, ...] = ()
    gained: tuple[Gained, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be compared at all, in sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTold:
    """One run with its steps."""

    run: ProjectRun
    steps: tuple[StepTold, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectReport:
    """A project's run with its history."""

    folder: str
    """The folder of history and outputs."""
    told: RunTold
    history: tuple[RunTold, ...] = ()
    """The runs that are shown side by side, the newest first; the one told is among them."""
    run_count: int = 0
    """The runs of the project, those not shown included."""
    compared: tuple[RunsCompared, ...] = ()
    """Each of them with the run before it, the newest first; or the two that were named."""
    made_at: str = ""
    """UTC, ISO 8601."""
    tfdyno: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Runs that go, or went, with their folders, all relative to the project's own."""

    runs: tuple[ProjectRun, ...]
    outputs: tuple[str, ...]
    """Outputs of these runs, finished or begun, that no other run needs."""
    kept_outputs: tuple[str, ...]
    """Outputs of these runs that runs which stay name as well."""
    unnamed: tuple[str, ...] = ()
    """That no run names at all, as where a history was moved away."""
    freed_bytes: int
    left: tuple[str, ...] = ()
    """That could not be deleted, with why."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing goes."""
        return not (self.runs or self.unnamed)
