"""Watch the steps of a training: what is traced again, and what grows.

with Watching(callbacks=callbacks, model=model) as watching:
    ...                      # after each step:
    watching.step()
    retraces, growth = watching.retraces(), watching.growth()

``growth()`` looks at what the user's code holds, so it is asked while that code still runs.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.units import format_bytes
from tfdyno.runtime.diagnose.growth.watched import GrowthWatch
from tfdyno.runtime.diagnose.watched_traces import TraceWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from tfdyno.core.base.untyped import Model
    from tfdyno.core.measure.step_facts import GrowthFacts, MemoryCourse, RetraceFacts


class Watching:
    """Around the steps that are looked at.

    Its cost, measured on 2 loaded cores with 383,000 Python objects: 5.4 us for each call of a
    ``tf.function`` from Python; 0.2 ms for each step, most of it in a first look after the third;
    later looks take at most a hundredth of the time. Beginning and ``growth()`` count what is
    alive, outside of the steps: 0.2 s each.
    """

    def __init__(
        self,
        *,
        callbacks: Sequence[Any] = (),
        model: Model = None,
        callback_now: Callable[[], str] = str,
        memory_alone: bool = False,
    ) -> None:
        """Prepare.

        Args:
            callbacks: Of ``fit``: what they keep is looked at.
            model: That is trained, if it is known.
            callback_now: Names the one that runs; empty: none.
            memory_alone: Whether nothing else is looked at: then looks may cost more.
        """
        self._traces = TraceWatch(callback_now)
        self._growth = GrowthWatch(tuple(callbacks), model, memory_alone)
        self._step_s = 0.0

    def __enter__(self) -> Watching:
        """Begin to watch."""
        self._growth.start()
        self._traces.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Leave TensorFlow as it was."""
        self._traces.stop()
        self._growth.stop()

    @property
    def steps(self) -> int:
        """How often ``step`` was called."""
        return self._traces.step

    @property
    def cost_s(self) -> float:
        """Seconds that ``step`` took in all: what the watch added to the steps."""
        return self._step_s

    def step(self) -> None:
        """Note that one more step is done."""
        began = time.perf_counter()
        self._traces.step += 1
        self._growth.step()
        self._step_s += time.perf_counter() - began

    def retraces(self) -> tuple[RetraceFacts, ...]:
        """Return functions that were traced again, the longest first."""
        return self._traces.facts()

    def traced_s(self) -> dict[int, float]:
        """Return seconds of tracing again, by the number of steps that were done before."""
        return self._traces.step_s

    def growth(self) -> tuple[GrowthFacts, ...]:
        """Return memory that grows with the steps, with what holds it."""
        return self._growth.facts()

    def memory(self) -> tuple[MemoryCourse, ...]:
        """Return how memory moved from step to step, whether it grows or not."""
        return self._growth.memory()

    @property
    def is_slow(self) -> bool:
        """Whether it makes Python remember where objects are made, which slows steps down."""
        return self._growth.is_slow

    def memory_words(self) -> str:
        """Write ``1.2 GiB``: what the process holds now."""
        return f"the process holds {format_bytes(self._growth.resident_bytes)}"

    def is_sure(self) -> bool:
        """Return whether more steps would tell no more of its growth."""
        return self._growth.is_sure()
