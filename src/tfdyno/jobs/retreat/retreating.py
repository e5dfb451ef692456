"""Run a child again, a step back each time, where XLA fails inside to compile its work."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tfdyno.core.base.errors import CompilerError, RetreatAsked, TfdynoError, UsageError
from tfdyno.core.base.flags import with_flags
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.recipe.retreat import Retreat, as_run, flags_of, is_compiling
from tfdyno.engines.process.process import ChildCrash
from tfdyno.rules.compiler import Fault, fault_in, next_step
from tfdyno.words.recipe.retreats import step_line

Result = TypeVar("Result")

UNKNOWN_FLAG = "in XLA_FLAGS"
"""How XLA ends a process whose flags it does not know: ``Unknown flag in XLA_FLAGS: --xla_…``."""
AGAIN = "started again, it runs"
OWN_END = frozenset({signal.SIGABRT, signal.SIGSEGV, signal.SIGILL, signal.SIGBUS, signal.SIGFPE})
"""Signals by which a process ends itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How the work is run this time."""

    recipe: Recipe
    retreats: tuple[Retreat, ...] = ()
    """That are in force."""
    again: bool = False
    """Whether it was begun before, under this very command."""

    def variables(self, set_already: Mapping[str, str]) -> dict[str, str]:
        """Return a child's variables, the steps' flags behind the ones that are set already."""
        added = flags_of(self.retreats)
        if not added:
            return dict(set_already)
        own = set_already.get("XLA_FLAGS", os.environ.get("XLA_FLAGS", ""))
        values = {name: value for name, _, value in (flag.partition("=") for flag in added)}
        return {**set_already, "XLA_FLAGS": with_flags(own, values)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is run, and who hears of a step back."""

    subject: str
    """What is compiled, in messages: ``train.py``."""
    recipe: Recipe
    had: tuple[Retreat, ...] = ()
    """Steps back of an earlier run of the same."""
    has_graph: bool = True
    """Whether it can run without XLA."""
    may: bool = True
    """Whether this process decides on a step back, and not one that has started it."""
    tell: Callable[[str], object] = field(default=lambda _line: None)
    """Called with a line for every step back."""
    keep: Callable[[tuple[Retreat, ...]], object] = field(default=lambda _all: None)
    """Called with all of them, before the work is run so."""


def retreating(
    attempt: Callable[[Trial], Result], work: Work
) -> tuple[Result, tuple[Retreat, ...]]:
    """Return the result of the work, run again a step back where XLA fails inside to compile it.

    Args:
        attempt: Runs the work in a child that is new each time: XLA reads its flags once.
        work: What is run.

    Returns:
        What came out, and the steps back under which it did.

    Raises:
        CompilerError: XLA fails with every step that there is, or none may be taken.
        RetreatAsked: This process does not decide on it: the step back is kept, not taken.
        TfdynoError: What else the work fails by.
    """
    trial = Trial(recipe=as_run(work.recipe, work.had), retreats=work.had)
    tried = {one.step for one in work.had}
    fault: Fault | None = None
    text = ""
    while True:
        try:
            return attempt(trial), trial.retreats
        except TfdynoError as error:
            if trial.retreats and _is_unfit(error, trial.retreats[-1]):
                trial = _without_last(work, trial)
                if fault is None:  # an earlier run took that step, with another XLA
                    continue
            else:
                fault, text = fault_of(error), error.raised
            if fault is None:
                _note(error, trial.retreats)
                raise
            step = next_step(
                fault, text, tried=tried, own_flags=os.environ.get("XLA_FLAGS", ""),
                has_graph=work.has_graph and work.recipe.execution != "graph",
            )  # fmt: skip
            if step is None or not work.recipe.retreat:
                raise failed(work, fault, text, step, trial.retreats) from error
            retreats = (*trial.retreats, step)
            if not work.may:
                work.keep(retreats)
                what = f"XLA failed to compile {work.subject}"
                raise RetreatAsked(what, why=step.cause, remedy=f"{AGAIN} {step.way}") from error
        tried.add(step.step)
        work.tell(step_line(work.subject, step))
        work.keep(retreats)
        trial = Trial(recipe=as_run(work.recipe, retreats), retreats=retreats, again=True)


def _without_last(work: Work, trial: Trial) -> Trial:
    kept = trial.retreats[:-1]
    work.keep(kept)
    return replace(trial, recipe=as_run(work.recipe, kept), retreats=kept)


def fault_of(error: TfdynoError) -> Fault | None:
    """Return the fault inside XLA that an error of a child tells of; None: it is something else."""
    code = error.child_exit_code if isinstance(error, ChildCrash) else None
    crashed = code is not None and -code in OWN_END and is_compiling(error.at)
    return fault_in(error.raised, crashed_in_xla=crashed)


def failed(
    work: Work, fault: Fault, text: str, step: Retreat | None, done: tuple[Retreat, ...]
) -> CompilerError:
    """Return what is said where no step back is left, or none may be taken."""
    told = step or next_step(fault, text, tried=(), has_graph=True)
    assert told  # of all steps the last is always one
    remedy = fault.remedy or "set XLA_FLAGS=--xla_gpu_autotune_level=0, or train without XLA"
    if step and not work.recipe.retreat:
        remedy = f"{remedy}; or leave out retreat=false"
    error = CompilerError(f"XLA failed to compile {work.subject}", why=told.cause, remedy=remedy)
    error.raised = text
    _note(error, done)
    return error


def _is_unfit(error: TfdynoError, step: Retreat) -> bool:
    """Return whether it fails by itself: a flag that this XLA lacks, code that needs XLA."""
    if step.flags:
        return UNKNOWN_FLAG in error.raised and any(
            flag.partition("=")[0] in error.raised for flag in step.flags
        )
    return isinstance(error, UsageError) and "execution" in str(error)


def _note(error: TfdynoError, done: tuple[Retreat, ...]) -> None:
    if done:
        error.add_note(f"It was run {', then '.join(one.words for one in done)} by then.")
