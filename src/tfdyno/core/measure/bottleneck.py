"""What holds a training's step back: the split of its time, findings with gains, the answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tfdyno.core.doctor.finding import Evidence, FixStep, Severity

BottleneckClass = Literal[
    "input", "host", "launch", "compute", "memory_bandwidth", "communication", "memory_pressure",
    "leak", "retrace", "callback", "placement", "precision", "unknown", "healthy",
]  # fmt: skip
SPLIT_PARTS = (
    "input", "host", "callback", "copy", "compute", "communication", "launch", "retrace",
    "validation", "checkpoint", "unseen",
)  # fmt: skip
"""Order in which a split is told; ``compute`` is split further by ``OPERATION_CLASSES``;
``unseen`` is what nobody looked into."""


ENDS_THE_RUN = frozenset({"leak"})
"""Classes that do not slow a training but end it, sooner or later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """How many times as fast: 1.0 is no gain."""

    low: float
    best: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """One thing that takes time or memory, with what to do about it."""

    bottleneck_class: BottleneckClass
    """``class`` in JSON."""
    cause: str
    """Stable id, such as ``input.sequential_map``."""
    summary: str
    evidence: tuple[Evidence, ...]
    fix: tuple[FixStep, ...]
    expected_gain: Gain | None = None
    """None: it cannot be told, as for a leak."""
    proven_gain: Gain | None = None
    settings: dict[str, str] = field(default_factory=dict)
    """The settings of a recipe that make the change: ``{"input.parallel_calls": "-1"}``; empty: by
    hand."""
    place: str = ""
    """``train.py:41``."""

    @property
    def asks_for_change(self) -> bool:
        """Whether something is to be changed: neither all is well, nor the cause unknown."""
        return self.bottleneck_class not in ("healthy", "unknown")

    @property
    def severity(self) -> Severity:
        """``error`` for what ends the training, ``note`` where nothing is wrong."""
        if self.bottleneck_class in ENDS_THE_RUN:
            return "error"
        return "note" if self.bottleneck_class == "healthy" else "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpeed:
    """How fast one stage of an input pipeline is when nothing but the pipeline runs."""

    title: str
    """``map(decode)``."""
    place: str = ""
    batch_s: float
    """What this stage takes of the time of a batch; all stages add up to the whole pipeline."""
    samples_per_s: float
    """That it would give if it were alone; 0: more than can be told."""
    bytes_per_s: float = 0.0
    """The same; 0: its size is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDiagnosis:
    """The answer: one primary cause, and all else that was found, the largest gain first."""

    title: str
    step_s: float
    split_s: dict[str, float]
    """Parts of a steady step that add up to ``step_s``; keys of ``SPLIT_PARTS``."""
    compute_s: dict[str, float]
    """``split_s["compute"]`` by class of operation, where a profile was made."""
    primary: Bottleneck
    findings: tuple[Bottleneck, ...]
    """The primary one first; of class ``healthy`` alone where nothing gains 10 %."""
    held_s: float = 0.0
    """The time of a step on a batch that is held, which waits for nothing; 0: not measured."""
    batch_s: float = 0.0
    """The time of one batch of the input pipeline by itself; 0: not measured."""
    stages: tuple[StageSpeed, ...] = ()
    """The stages of the pipeline, its sources first; empty where they could not be told apart."""
    notes: tuple[str, ...] = ()
