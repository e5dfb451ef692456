"""What a loop of the user's own does between two steps: other functions, validation, checkpoints.

What it does at most of its steps belongs to the step. What it does now and then is told by itself,
spread over the steps of an epoch as a callback of ``fit`` would be.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tfdyno.core.measure.step_facts import CallbackFacts
from tfdyno.model.measure.statistics import median
from tfdyno.process.own_lines import code_place, own_place
from tfdyno.runtime.diagnose.callbacks import VALIDATION
from tfdyno.runtime.diagnose.clock import RARE_RATIO, rare, seen_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.base.untyped import Function
    from tfdyno.runtime.diagnose.clock import StepTimes, TimedStep

SAVING = "checkpoint"
MOST_CALLS = 16
"""The most calls of other functions in a step that is repeated with them."""
_VALIDATES = re.compile(r"(?i)(^|_)(val|valid|validate|validation|eval|evaluate|test)(_|$)")


class Between:
    """Keeps what happens from one step to the next."""

    def __init__(self, times: StepTimes) -> None:
        """Tell ``times`` of all of it."""
        self.times = times
        self.places: dict[str, str] = {}
        """Lines of the script by the names of what ran there."""
        self.done: set[str] = set()
        """Names of what is no function of TensorFlow's."""
        self._calls: list[Callable[[], Any]] = []
        self._most: Counter[str] = Counter()
        self._now: Counter[str] = Counter()
        """How often each function was called, at most and since the last step."""

    def ran(
        self,
        function: Function,
        call: Callable[[], Any],
        seconds_s: float,
        *,
        is_usual: bool,
    ) -> None:
        """A ``tf.function`` was called that is not the step.

        Args:
            function: It.
            call: Calls it again.
            seconds_s: What it took.
            is_usual: Whether it is told with the steps, however seldom it runs: it takes gradients
                and is training, or it was traced, which is told as such.
        """
        self._keep(call)
        code = getattr(function.python_function, "__code__", None)
        called = getattr(function.python_function, "__name__", "") or "function"
        name = called if code_place(code) else own_place() or called
        self._now[name] += 1
        self._most[name] = max(self._most[name], self._now[name])
        self.times.functioned("" if is_usual else name, seconds_s)
        self.places.setdefault(name, own_place())

    def did(self, kind: str, name: str, seconds_s: float) -> None:
        """Keras validated, or something was saved, which took so long."""
        told = f"{kind} ({name})"
        self.times.beside(told, seconds_s)
        self.done.add(told)
        if kind == VALIDATION:
            self.times.validated(seconds_s)
        if kind == SAVING:
            self.times.saved(seconds_s)
        self.places.setdefault(told, own_place())

    def predicted(self, name: str, seconds_s: float) -> None:
        """Keras predicted, which took so long: at each step that is the loop's own work."""
        self.times.beside(name, seconds_s, as_callback=False)
        self.places.setdefault(name, own_place())

    def trained(self, call: Callable[[], Any], seconds_s: float) -> None:
        """Another model was trained on a batch by ``call``, which took so long."""
        self._keep(call)
        self.times.functioned("", seconds_s)

    def step_begins(self) -> list[Callable[[], Any]]:
        """Return calls of functions since the last step, each as it was; none: they are many."""
        calls, self._calls = self._calls, []
        self._now.clear()
        return calls if len(calls) <= MOST_CALLS else []

    def often(self) -> bool:
        """Return whether other functions belong to the steps, as what is not ``rare`` does."""
        seen = seen_steps(self.times)
        return sum(step.function_s > 0.0 for step in seen) > RARE_RATIO * len(seen)

    def facts(self, steps_per_epoch: int) -> tuple[tuple[CallbackFacts, ...], int]:
        """Return what is done beside the steps, and the steps of an epoch.

        What is done now and then is spread over those.

        Args:
            steps_per_epoch: 0: not known; then it is the distance from one time to the next.
        """
        seen = seen_steps(self.times)
        if not seen:
            return (), steps_per_epoch
        count = sum(step.count for step in seen)
        now_and_then = rare(seen)
        told = [
            CallbackFacts(
                name=name,
                place=self.places.get(name, ""),
                per_step_s=math.fsum(step.beside_s.get(name, 0.0) for step in seen) / count,
            )
            for name in sorted(self.done - now_and_then)
        ]
        usual = [step for step in seen if not now_and_then & step.beside_s.keys()] or seen
        typical_s = median([step.whole_s for step in usual])
        costs_s = {name: _costs_s(name, self.times, seen, typical_s) for name in now_and_then}
        every = steps_per_epoch or _distance(now_and_then, seen)
        told += [
            CallbackFacts(
                name=self._title(name),
                place=self.places.get(name, ""),
                per_epoch_s=math.fsum(each_s) / count * every,
            )
            for name, each_s in sorted(costs_s.items())
            if each_s
        ]
        return tuple(told), every

    def _keep(self, call: Callable[[], Any]) -> None:
        if len(self._calls) <= MOST_CALLS:  # more would keep the data of a whole validation
            self._calls.append(call)

    def _title(self, name: str) -> str:
        """Return a function without gradients that takes batch after batch validates."""
        validates = name not in self.done and (self._most[name] > 1 or _VALIDATES.search(name))
        return f"{VALIDATION} ({name})" if validates else name


def _distance(names: set[str], seen: Sequence[TimedStep]) -> int:
    """Count steps from one to the next of what is most frequent; all, where it is done once."""
    if not names:
        return 0
    places: dict[str, list[int]] = {name: [] for name in names}
    ended = 0
    for step in seen:
        for name in names & step.beside_s.keys():
            places[name].append(ended)
        ended += step.count
    most = max(places.values(), key=len)
    return round(median([float(b - a) for a, b in pairwise(most)])) if len(most) > 1 else ended


def _costs_s(
    name: str, times: StepTimes, seen: Sequence[TimedStep], typical_s: float
) -> list[float]:
    """Return what each took beyond a usual step; the first is traced, and as long as the others.

    Empty where there was only that.
    """
    first = next(step for step in times.steps if name in step.beside_s)
    steps = [step for step in seen if name in step.beside_s]
    later = [step for step in steps if step is not first]
    costs_s = [
        max(step.beside_s[name], (step.whole_s - typical_s) * _share(step, name)) for step in later
    ]
    mean_s = math.fsum(costs_s) / len(costs_s) if costs_s else 0.0
    return costs_s + [mean_s] * (len(steps) - len(later) if costs_s else 0)


def _share(step: TimedStep, name: str) -> float:
    total_s = math.fsum(step.beside_s.values())
    return step.beside_s[name] / total_s if total_s else 1.0
