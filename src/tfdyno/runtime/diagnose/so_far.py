"""What a look can tell when it ends before its time: the script failed, or a stop was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import failure_of
from tfdyno.core.base.units import significant
from tfdyno.core.measure.step_facts import StepFacts
from tfdyno.core.messages.diagnose import SeenSteps
from tfdyno.process.stop_asked import StopAsked
from tfdyno.runtime.diagnose.clock import FEWEST, StepTimes

if TYPE_CHECKING:
    from tfdyno.core.base.errors import TfdynoError


@dataclass(slots=True)
class SoFar:
    """The look that is under way.

    Attributes:
        stop: Set where a stop was asked for: user code may catch even that.
    """

    stop: StopAsked | None = None
    _times: StepTimes | None = None
    _facts: Callable[[str], StepFacts] | None = None

    def begin(self, times: StepTimes, facts: Callable[[str], StepFacts]) -> None:
        """Remember how far a look has come.

        Args:
            times: Its clock.
            facts: Gives what was seen until now; takes why it ended, as part of a sentence.
        """
        self._times, self._facts = times, facts
        times.heed = self.heed

    def goes_on(self, facts: Callable[[], StepFacts]) -> None:
        """End the look itself; what is looked at behind it adds to what ``facts`` gives."""
        self._facts = lambda _end: facts()

    @property
    def span_s(self) -> tuple[float, float]:
        """When the steps that count began and the last of them ended, by its clock; zeros: none."""
        return self._times.own_span_s if self._times else (0.0, 0.0)

    def heed(self) -> None:
        """Raise the stop that was asked for."""
        if self.stop:
            raise self.stop

    def stopped(self, signal_name: str) -> SeenSteps | None:
        """Return what to hand over after a stop; None before the first step.

        Args:
            signal_name: ``SIGTERM`` or ``Ctrl-C``.
        """
        if self._times is None or not self._times.steps:
            return None
        seen = self._seen("It was stopped") or SeenSteps(seen=steps_words(self._times))
        return replace(seen, stopped=signal_name)

    def failed(self, error: TfdynoError) -> SeenSteps | None:
        """Return what to hand over after a failure; None where steps were too few."""
        seen = self._seen("It failed")
        return replace(seen, failed=failure_of(error)) if seen else None

    def with_steps(self, error: TfdynoError) -> TfdynoError:
        """Return the error, with what the few steps took that ran before it."""
        if self._times is None or not self._times.steps:
            return error
        ran = f"before that {steps_words(self._times)}"
        remedy = "; ".join(filter(None, (error.remedy, ran)))
        return type(error)(error.what, why=error.why, remedy=remedy)

    def _seen(self, end: str) -> SeenSteps | None:
        """Return the facts of steady steps; before, times say how TensorFlow starts."""
        times = self._times
        if times is None or self._facts is None or times.own_from < 0:
            return None
        if len(times.steps) - times.own_from < FEWEST:
            return None
        try:
            return SeenSteps(facts=self._facts(end))
        except Exception:  # it is the end of something that went wrong already
            return None


def steps_words(times: StepTimes) -> str:
    """Write ``3 steps ran: the first took 1.31 s with compiling, the others 41 ms each``."""
    first, *others = times.steps
    told = f"took {_words(first.whole_s or first.call_s)} with compiling"
    if not others:
        return f"1 step ran: it {told}"
    count = sum(step.count for step in others)
    each = _words(sum(step.whole_s for step in others) / count)
    rest = f"the others {each} each" if count > 1 else f"the other one {each}"
    return f"{first.count + count:,} steps ran: the first {told}, {rest}"


def _words(seconds_s: float) -> str:
    return f"{significant(seconds_s)} s" if seconds_s >= 1 else f"{significant(1e3 * seconds_s)} ms"
