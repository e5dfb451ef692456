"""The other workers of a training, as its loop sees them: told of steps and of ends of epochs."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from tfdyno.runtime.recipe.strategy import worker_count, worker_rank
from tfdyno.runtime.train.ranks import Ranks

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model, Value
    from tfdyno.runtime.recipe.composed_step import ComposedStep


class WorkerGroup:
    """Looks after each epoch whether all workers still train one model at one pace.

    Attributes:
        notes: Sentences for the user.
    """

    def __init__(self, model: Model, step: ComposedStep) -> None:
        """Take the model and the step that all of them run together."""
        self._model, self._step = model, step
        self._rank = worker_rank()
        self._ranks = Ranks(model.distribute_strategy, self._rank, worker_count())
        self._steps, self._began_s, self._ended_s = 0, 0.0, 0.0
        self._is_checked = False
        self._slow: set[int] = set()
        self.notes: list[str] = []

    def table(self, own: list[float]) -> Value:
        """Return the numbers of all workers, a row for each; a joint operation."""
        began_s = time.perf_counter()
        found = self._ranks.table(own)
        if self._step.wait:
            self._step.wait.waited(time.perf_counter() - began_s)
        return found

    def steps(self, count: int) -> None:
        """Count steps that were taken; the first call of an epoch is left out of its pace."""
        if not self._began_s:
            self._clear()
            return
        self._steps += count
        self._ended_s = time.monotonic()

    def epoch_end(self, epoch: int) -> None:
        """End an epoch of all workers; raises ``ToolError`` where they have drifted apart.

        Args:
            epoch: Counted from 1.
        """
        if not self._is_checked:
            self._is_checked = True
            if note := self._ranks.check_same(self._model.trainable_variables):
                self.notes.append(note)
        wait_s, steps = (self._step.wait.take_s() if self._step.wait else 0.0), self._steps
        passed_s = self._ended_s - self._began_s
        each = max(1, steps)
        slow = self._ranks.straggler(wait_s / each, passed_s / each, steps)
        if slow and slow.rank not in self._slow:
            self._slow.add(slow.rank)
            self.notes.append(f"In epoch {epoch} {slow.sentence}")
            if self._rank == 0:  # whoever watches need not wait for the end
                print(self.notes[-1], file=sys.stderr, flush=True)
        self._steps, self._began_s = 0, 0.0

    def _clear(self) -> None:
        """Count the pace from here."""
        if self._step.wait:
            self._step.wait.take_s()
        self._steps = 0
        self._began_s = self._ended_s = time.monotonic()
