"""What JAX compiles while steps run: how often, for how long, and for which batch.

JAX tells each of its compiles by ``jax.monitoring``, with the name of the function. A first one is
no news, but for the step itself, which was compiled before the watch began.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import jax

from tfdyno.core.measure.step_facts import RetraceFacts
from tfdyno.process.own_lines import own_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.runtime.diagnose.jax_batches import Batches

STEP = "train_step"
"""What Keras calls the function of a step."""
COMPILED = "/jax/core/compile/backend_compile_duration"
_BEFORE = (
    "/jax/core/compile/jaxpr_trace_duration",
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
)
"""What comes before a compile of the same function."""
_JIT = re.compile(r"^jit\((.*)\)$")


@dataclass(slots=True)
class _Seen:
    """The compiles of functions of one name."""

    place: str = ""
    callback: str = ""
    count: int = 0
    seconds_s: float = 0.0
    differs: Counter[str] = field(default_factory=Counter)
    steps: set[int] = field(default_factory=set)


class CompileWatch:
    """Counts while ``start`` and ``stop`` enclose the steps; the owner counts ``step`` up."""

    def __init__(self, callback_now: Callable[[], str], batches: Batches) -> None:
        """Watch nothing yet.

        Args:
            callback_now: Names the user's callback that runs.
            batches: Tell what is new of the batch of the step.
        """
        self.step, self._callback_now, self._batches = 0, callback_now, batches
        self.step_s: dict[int, float] = {}
        """Seconds of compiling, tracing included, by the step it was in."""
        self._seen: dict[str, _Seen] = {}
        self._before: dict[str, dict[str, float]] = {}

    def start(self) -> None:
        """Watch from now on."""
        jax.monitoring.register_event_duration_secs_listener(self._told)

    def stop(self) -> None:
        """Leave JAX as it was."""
        jax.monitoring.unregister_event_duration_listener(self._told)

    def facts(self) -> tuple[RetraceFacts, ...]:
        """Return what was compiled again, the longest first."""
        found = [told for name, seen in self._seen.items() if (told := self._facts(name, seen))]
        return tuple(sorted(found, key=lambda one: -one.seconds_s))

    def _told(self, event: str, seconds_s: float, **more: object) -> None:
        """Take an event of JAX."""
        name = _JIT.sub(r"\1", str(more.get("fun_name", "")))
        if event in _BEFORE:
            self._before.setdefault(name, {})[event] = seconds_s
        elif event == COMPILED:
            self._compiled(name, seconds_s + sum(self._before.pop(name, {}).values()))

    def _compiled(self, name: str, seconds_s: float) -> None:
        seen, callback = self._seen.setdefault(name, _Seen()), self._callback_now()
        seen.count += 1
        seen.steps.add(self.step)
        if seen.count > 1 or name == STEP:
            seen.seconds_s += seconds_s
            self.step_s[self.step] = self.step_s.get(self.step, 0.0) + seconds_s
        seen.place, seen.callback = own_place() or seen.place, callback
        if self._batches.differs and not callback:
            seen.differs[self._batches.differs] += 1

    def _facts(self, name: str, seen: _Seen) -> RetraceFacts | None:
        again = seen.count - (name != STEP)
        if again <= 0 or len(seen.steps) < 2 - (name == STEP):
            return None
        most = seen.differs.most_common(1)
        return RetraceFacts(
            function=name,
            place=seen.place,
            traces=again,
            calls=max(self.step, again),
            seconds_s=seen.seconds_s,
            differs=most[0][0] if most else "",
            callback=seen.callback,
        )
