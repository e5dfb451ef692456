"""The children that look at steps: of a training that they run, and in a profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tfdyno.core.base.errors import Failure
from tfdyno.core.choose.workload import Workload
from tfdyno.core.measure.software import Backend, Software
from tfdyno.core.measure.step_facts import StepFacts
from tfdyno.core.messages.child import Child
from tfdyno.core.recipe.recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long the user's own steps, and then the parts of a training, are looked at."""

    own_s: float = 6.0
    """Enough where there are ``least_steps`` too."""
    most_s: float = 10.0
    """Enough however few steps there are, but for ``FEWEST``."""
    least_steps: int = 30
    warm_s: float = 1.0
    """The time before that, from the end of the first step on: buffers fill, threads find their
    number."""
    warm_steps: int = 5
    most_warm_s: float = 3.0
    held_s: float = 2.0
    """The time of steps on one batch that is held."""
    alone_s: float = 3.0
    """The time of the input by itself, as TensorFlow runs it."""
    stages_s: float = 2.0
    """The time of the input exactly as it is written, for the time of each stage."""
    memory_alone: bool = False
    """Only whether memory grows is looked at: neither the parts nor a profile."""
    until_sure: bool = False
    """Enough only when more steps would tell no more, but for ``most_s``."""
    fits_s: float = 90.0
    """The time of later fits of a script that calls it again, where memory alone is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtSteps:
    """Run a training and look at its steps."""

    workload: Workload
    recipe: Recipe
    limits: Limits = Limits()
    cards: Mapping[str, list[float]] = field(default_factory=dict)
    """FLOP/s of each card by dtype, and its ``bytes_per_s``; empty: not known."""
    backend: Backend = "tensorflow"
    """Of Keras."""
    seen_gpus: int = 0
    """GPUs that the machine shows to the child; asked for JAX alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadySpan:
    """When the steps that count ran, by ``time.monotonic``, which all processes share."""

    began_s: float
    ended_s: float
    cards: tuple[int, ...]
    """Numbers, in CUDA's order, of the cards that they ran on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenSteps:
    """What a look saw."""

    facts: StepFacts | None = None
    """None: there were no steady steps yet when the end was asked for."""
    software: Software | None = None
    steady: SteadySpan | None = None
    stopped: str = ""
    """The signal that asked for the end; empty: none."""
    seen: str = ""
    """Without ``facts``: what the few steps took, in words."""
    failed: Failure | None = None
    """What ended the training in its steady steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadProfile:
    """Read a profile that was made elsewhere."""

    path: Path
    """An ``*.xplane.pb``, a ``*.trace.json.gz`` or a folder of logs."""


LOOK = Child(module="tfdyno.runtime.diagnose.child", request=LookAtSteps, result=SeenSteps)
PROFILE = Child(module="tfdyno.profile.child", request=ReadProfile, result=StepFacts)
