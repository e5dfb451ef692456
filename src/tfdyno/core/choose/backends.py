"""A step under each backend of Keras on one card, and which is faster if that can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.estimate import Estimate
from tfdyno.core.choose.workload import Trace
from tfdyno.core.measure.software import Backend

BackendVerdict = Literal["faster", "slower", "no_difference", "unknown"]
Obstacle = Literal["", "script", "step", "untraced", "outside_xla", "wheel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendStep:
    """One way to run the step."""

    backend: Backend
    execution: Literal["graph", "xla"]
    """JAX has XLA alone."""
    estimate: Estimate | None = None
    """None: it cannot run so, see ``obstacle``."""
    obstacle: Obstacle = ""
    """What stands against it: in the script, as ``rules.jax`` judges it; a step
    function; a model that JAX cannot trace; operations that XLA does not have; a wheel of
    TensorFlow whose XLA compiles nothing for the card."""
    names: str = ""
    """What the obstacle is about: the name in the script, the operations, the reason."""
    why: str = ""
    """Of the script: why JAX cannot run it, in words."""
    file: str = ""
    line: int = 0
    """Of the script; 0: it is about none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendsOnCard:
    """All ways on one card."""

    gpu: str
    gpu_name: str
    steps: tuple[BackendStep, ...]
    """TensorFlow's graph, TensorFlow with XLA, JAX."""
    verdict: BackendVerdict
    """JAX against the faster way of TensorFlow; ``unknown``: one of them has no estimate."""
    speed_ratio: Interval | None = None
    """How many times as fast JAX is; None where the verdict is ``unknown``."""
    baseline: Literal["graph", "xla"] | None = None
    """The faster way of TensorFlow; None: none has an estimate."""

    def step(self, backend: Backend, execution: str) -> BackendStep:
        """Return one of the ways."""
        return next(
            one for one in self.steps if (one.backend, one.execution) == (backend, execution)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendsAnswer:
    """What was asked of a workload, for every card."""

    title: str
    batch_size: int
    batch_source: str
    trace: Trace
    cards: tuple[BackendsOnCard, ...]
    command: str
    """Proves it by measuring both in turns; empty: nothing can be measured."""
    notes: tuple[str, ...] = ()
