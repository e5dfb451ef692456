"""A run of a project under way: which steps it has, what stands of them, and its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.output import Made
from tfdyno.core.project.project import Project, ProjectRun, StepRun
from tfdyno.core.project.step_command import CommandShape, nearest
from tfdyno.core.project.step_order import with_needed, with_resting
from tfdyno.core.project.step_reference import references
from tfdyno.jobs.project._check import told_of
from tfdyno.jobs.project._inputs import changed_files
from tfdyno.jobs.project._look import OutputInspection, look, newest
from tfdyno.jobs.project._outputs import Output
from tfdyno.jobs.project.runs import ended
from tfdyno.store.digests import Digests
from tfdyno.store.project_history import ProjectHistory

if TYPE_CHECKING:
    from tfdyno.core.project.project import ProjectStep

_WOULD = "{} would run anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What is run."""

    file: Path
    only: tuple[str, ...] = ()
    """These steps and what they rest on; empty: all."""
    begin: str = ""
    """This step and all that rest on it; of what they need the last output is taken."""
    force: tuple[str, ...] = ()
    """Made again though nothing has changed, with all that rests on them."""


@dataclass(slots=True, kw_only=True)
class RunState:
    """What is known of a run so far."""

    project: Project
    request: RunRequest
    shapes: Mapping[str, CommandShape | None]
    earlier: tuple[ProjectRun, ...]
    """Newest first."""
    so_far: ProjectRun
    digests: Digests
    made: dict[str, Made] = field(default_factory=dict)
    """What stands, by step."""

    @property
    def needs(self) -> dict[str, tuple[str, ...]]:
        """What each step rests on."""
        return {step.name: step.needs for step in self.project.steps}

    @property
    def history(self) -> ProjectHistory:
        """The history of the project."""
        return ProjectHistory(folder=self.project.folder)

    def chosen(self) -> tuple[ProjectStep, ...]:
        """Return the steps of the run, in their order; raises ``UsageError``."""
        asked, names = self.request, tuple(self.needs)
        for name in (*asked.only, *asked.force, *filter(None, (asked.begin,))):
            if name not in names:
                raise UsageError(
                    f"{self.project.file} has no step {name}", remedy=nearest(name, names)
                )
        if asked.begin and asked.only:
            raise UsageError("--from and --only contradict", remedy="give one of them")
        first = with_resting((asked.begin,), self.needs) if asked.begin else frozenset(names)
        for name in asked.force:
            if asked.begin and name not in first:
                raise UsageError(f"--force {name} is before --from {asked.begin}",
                                 remedy=f"give --from {name}")  # fmt: skip
        wanted = with_needed(asked.only or first, self.needs)
        return tuple(step for step in self.project.steps if step.name in wanted)

    def seen(self, step: ProjectStep) -> OutputInspection:
        """Look whether its output holds; raises ``UsageError`` where a file is missing."""
        forced = step.name in with_resting(self.request.force, self.needs)
        shape = self.shapes[step.name]
        earlier, digest = self.earlier, self.digests.of
        return look(self.project, step, shape, self.made, earlier, digest, forced=forced)

    def changed(self, rests_on: Mapping[str, str]) -> str:
        """Say what is not any more as it was when a step began; empty: all is."""
        return changed_files(rests_on, self.project.file.parent, self.digests.of)

    def taken(self, step: ProjectStep) -> Made | None:
        """Return the last output of a step that is not looked at; None: it is.

        Raises:
            UsageError: It has made nothing that stands.
        """
        begin = self.request.begin
        if not begin or step.name in with_resting((begin,), self.needs):
            return None
        made = newest(self.project, step.name, self.earlier)
        if made is None:
            raise UsageError(
                f"step {step.name} comes before {begin} and has made nothing that stands",
                remedy=f"leave --from out, or give --from {step.name}",
            )
        return made

    def keep(self, step: StepRun) -> None:
        """Put how a step stands in place of how it stood."""
        others = tuple(one for one in self.so_far.steps if one.step != step.step)
        self.so_far = replace(self.so_far, steps=(*others, step))
        self.history.write(self.so_far)

    def previewed(self) -> tuple[StepRun, ...]:
        """Return each step as it would be found; one behind a step that runs would run as well."""
        trial = replace(self, made={})
        return tuple(_previewed(trial, step) for step in self.chosen())


def _previewed(state: RunState, step: ProjectStep) -> StepRun:
    base = StepRun(step=step.name, command=step.command)
    anew = [name for name in step.needs if name not in state.made]
    made = state.taken(step)
    if made is None:
        _check_references(state, step)
    if made is None and anew:
        return replace(base, why=_WOULD.format(" and ".join(anew)))
    if made is None:
        seen = state.seen(step)
        base = replace(base, key=seen.output.key, rests_on=seen.rests_on,
                       output=seen.output.name, why=seen.why)  # fmt: skip
        made = seen.made
    if made is None:
        return base
    state.made[step.name] = made
    return replace(base, status="reused", headline=made.headline, duration_s=made.duration_s)


def _check_references(state: RunState, step: ProjectStep) -> None:
    """Refuse what names nothing in the answers that stand; raises ``UsageError``."""
    for name, keys in references((step.options, step.load)):
        if name in state.made:
            output = Output(project=state.project, step=name, key=state.made[name].key)
            with told_of(step):
                output.named(keys)


def settled(history: ProjectHistory) -> tuple[ProjectRun, ...]:
    """Return earlier runs, newest first; one that says it runs was killed, and is told so now.

    To be called by who holds the project's lock.
    """
    found = []
    for run in history.runs():
        one = run
        if run.status == "running":
            one = ended(run)
            history.write(one)
        found.append(one)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReporter:
    """What is called, each time with what there is to be told."""

    begun: Callable[[StepRun, int, int], object] = lambda _step, _number, _count: None
    """A step that runs, its place and how many there are."""
    reads: Callable[[str], object] = lambda _file: None
    """A large file that is read, to see whether it is as it was."""
    said: Callable[[str], None] = lambda _line: None
    """The last line of the log of the step that runs."""
    waits: Callable[[str], object] = lambda _why: None
    """Why it takes a while to end, once it was asked to."""
    ended: Callable[[StepRun], object] = lambda _step: None
