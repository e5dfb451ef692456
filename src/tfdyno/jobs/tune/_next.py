"""The next trial of a tuning: drafted, and judged before it runs."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.jobs.tune._trial import drafted
from tfdyno.model.measure import trial_judge as judge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.train.search_space import SearchSpace, Value
    from tfdyno.core.train.tuning import Trial
    from tfdyno.jobs.tune._look import StartInspection
    from tfdyno.jobs.tune.request import TuneRequest

MOST_DRAWS = 100
"""The most draws at random for an untried combination, before all are gone through in order."""


class Left:
    """Combinations of a space that no trial had."""

    def __init__(self, space: SearchSpace, trials: Sequence[Trial]) -> None:
        """Count them."""
        self._space = space
        self._known = {self._key(one.values) for one in trials if space.holds(one.values)}
        self.count = space.size - len(self._known)

    def one(self, seed: int) -> dict[str, Value]:
        """Return one of them at random; raises ``StopIteration`` where there is none."""
        draw, choices = random.Random(seed), self._space.choices
        for _ in range(MOST_DRAWS):
            values = {name: draw.choice(several) for name, several in choices.items()}
            if self._key(values) not in self._known:
                return values
        every = self._space.combinations()
        return next(values for values in every if self._key(values) not in self._known)

    def _key(self, values: Mapping[str, Value]) -> tuple[Value, ...]:
        return tuple(values[name] for name in self._space.choices)


def drafted_at(
    number: int,
    values: Mapping[str, Value],
    request: TuneRequest,
    look: StartInspection,
    trials: Sequence[Trial],
) -> Trial:
    """Return the trial at a place of the space, with what is expected of it."""
    return drafted(
        number,
        values,
        look.space,
        request.recipe,
        own_batch_size=look.batch_size,
        replicas=look.replicas,
        update_samples=look.update_samples,
        expected=lambda recipe, size: look.expected(recipe, size, trials),
    )


def judged(trial: Trial, trials: Sequence[Trial]) -> Trial | None:
    """Return the trial with why it is not run; None: it is to be run."""
    if trial.status == "failed":
        return trial
    if same := judge.as_before(trial, trials):
        twin = next(one for one in trials if one.number == same.same_as)
        return replace(
            trial, status="same", reason=same.reason, same_as=same.same_as,
            samples_per_s=twin.samples_per_s,
        )  # fmt: skip
    if reason := judge.refused(trial, trials):
        return replace(trial, status="failed", reason=reason)
    if reason := judge.certain(trial, trials) or judge.unfit(trial, trials):
        return replace(trial, status="not_fit", reason=reason)
    if reason := judge.hopeless(trial, trials):
        return replace(trial, status="hopeless", reason=reason)
    return None
