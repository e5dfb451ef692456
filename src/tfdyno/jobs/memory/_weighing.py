"""The ways to run one workload on one card that a memory plan weighs, traced as they are wanted."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.base.settings import Route
from tfdyno.core.base.units import GIB
from tfdyno.core.choose.auto_recipe import Option
from tfdyno.core.choose.hardware import Gpu
from tfdyno.jobs.choose.options import Way, computing_once
from tfdyno.jobs.choose.predict import Predictor, StepSettings, predictor_for
from tfdyno.words.base.language import say
from tfdyno.words.memory.plan import fine_tune_changes

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import FineTune, Trace


REMAT = "blocks"
"""What is computed again: repeated blocks, or segments of the model's graph."""
_MOST_HOST_RATIO = 0.5
"""Share of this machine's memory that the weights of a TensorFlow trace may take: they are real."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What may be changed, and how sure the answer is to be."""

    fixed_precision: bool = False
    """Whether the precision was named and stays."""
    optimizers: tuple[str, ...] | None = None
    """The optimizers to weigh; None: those that keep less, where the state of the script's own
    takes much."""
    route: Route = "auto"
    """``exact``: the chosen option is compiled at its own batch for the card; ``quick``: not even
    programs that were compiled before are looked at."""


@dataclass(slots=True, kw_only=True)
class Weighing:
    """What was traced so far, and every option of it."""

    own: Predictor
    """The workload as it is, with its execution."""
    gpu: Gpu
    wish: Wish
    progress: Callable[[str], None]
    plain: dict[str, Predictor]
    """Nothing computed again, no other optimizer: by policy, the script's own first."""
    found: list[tuple[Option, Way]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def options(self) -> tuple[Option, ...]:
        """All of them, the script as it is first."""
        return tuple(option for option, _ in self.found)

    def add(
        self,
        policy: str,
        *,
        remat: bool = False,
        optimizer: str = "",
        fine_tune: FineTune | None = None,
    ) -> tuple[Option, ...]:
        """Weigh every split of the batch of one way; a note says why it has no trace.

        Args:
            policy: A key of ``plain``.
            remat: Whether blocks are computed again.
            optimizer: In place of the script's own.
            fine_tune: How the preset is trained, in place of what was asked.

        Returns:
            The options that were added.
        """
        plain = self.plain[policy]
        changed = bool(optimizer or fine_tune)
        held = self._traced(plain, optimizer=optimizer, fine_tune=fine_tune) if changed else plain
        if held is None:
            return ()
        changes = (policy != next(iter(self.plain)), remat, bool(optimizer), bool(fine_tune))
        way = Way(predictor=held, gpu=self.gpu, share=self.own.batch_size, changes=sum(changes))
        if remat:
            again = self._computing_again(plain, held, optimizer, fine_tune)
            if again is None:
                return ()
            way = replace(way, predictor=again, plain=held, once=computing_once(again))
        found = tuple(way.option(size, parts) for size, parts in way.splits())
        self.found += [(one, way) for one in found]
        return found

    def _computing_again(
        self, plain: Predictor, held: Predictor, optimizer: str, fine_tune: FineTune | None
    ) -> Predictor | None:
        trace = held.traced.trace
        if trace.workload.hub is None:
            if reason := _too_large(trace):
                self.notes.append(say("Recomputing was not weighed: {reason}", reason=reason))
                return None
        elif _held_bytes(trace) > self.gpu.usable_memory_bytes:
            return None  # nor would it fit without any activation
        return self._traced(plain, optimizer=optimizer, remat=REMAT, fine_tune=fine_tune)

    def _traced(
        self,
        plain: Predictor,
        *,
        optimizer: str,
        remat: str = "",
        fine_tune: FineTune | None = None,
    ) -> Predictor | None:
        """Return the predictor of a precision with these changes; None and a note: it fails."""
        workload = plain.traced.trace.workload
        parts = [remat and say("recomputed blocks"), optimizer]
        if fine_tune and workload.hub:
            parts += fine_tune_changes(fine_tune, workload.hub.fine_tune)
            workload = replace(workload, hub=replace(workload.hub, fine_tune=fine_tune))
        what = say(" with ").join(filter(None, parts))
        self.progress(
            say("weighing {what} in {policy}", what=what, policy=plain.traced.trace.policy)
        )
        try:
            return predictor_for(
                replace(workload, optimizer=optimizer, remat=remat),
                StepSettings(precision=plain.precision, execution=plain.execution),
                batch_size=plain.batch_size,
                progress=self.progress,
            )
        except TfdynoError as error:
            self.notes.append(
                say(
                    "Not weighed: {what} in {policy}: {error}",
                    what=what,
                    policy=plain.traced.trace.policy,
                    error=error,
                )
            )
            return None


def _too_large(trace: Trace) -> str:
    """Return why this machine cannot make the real weights of TensorFlow's trace; empty: it can."""
    needed = _held_bytes(trace)
    held = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed <= _MOST_HOST_RATIO * held:
        return ""
    return say(
        "{size:.1f} GiB of weights and state do not go well into this machine.",
        size=needed / GIB,
    )


def _held_bytes(trace: Trace) -> int:
    """Return what a step holds from its first kernel to its last."""
    roles = ("weight", "state", "optimizer")
    return sum(one.bytes for one in trace.tensors if one.role in roles)
