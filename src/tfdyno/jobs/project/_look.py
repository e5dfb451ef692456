"""Whether a step's output still holds, and in words why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.project.output import Made
from tfdyno.core.project.project import FIRST
from tfdyno.core.project.step_key import change_words, key_of
from tfdyno.jobs.project._inputs import rests_on
from tfdyno.jobs.project._outputs import Output, is_still_there

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tfdyno.core.project.project import Project, ProjectRun, ProjectStep, StepRun
    from tfdyno.core.project.step_command import CommandShape

FORCED = "asked for"
FOUND = "it found something of severity error"
_ENDED = {
    "failed": "it failed last time",
    "stopped": "it was stopped last time",
    "running": "it was killed last time",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputInspection:
    """What is known of a step before it runs."""

    output: Output
    rests_on: dict[str, str]
    made: Made | None
    """The output that still holds; None: the step has to run."""
    goes_on: bool
    """Whether what a stopped run left is of use."""
    why: str
    """Why it has to run; empty: it has not."""


def look(
    project: Project,
    step: ProjectStep,
    shape: CommandShape | None,
    before: Mapping[str, Made],
    runs: Sequence[ProjectRun],
    digest: Callable[[Path], str],
    *,
    forced: bool,
) -> OutputInspection:
    """Compare a step with what it made before.

    Args:
        project: The project.
        step: One of its steps.
        shape: Of its command; None: a script of the user's.
        before: What stands of the steps that it needs.
        runs: Earlier ones, newest first.
        digest: Of one file.
        forced: Whether it runs even if nothing has changed.

    Raises:
        UsageError: A file that it names is not there, or cannot be read.
    """
    keys = {name: before[name].key for name in step.needs}
    stamps = {name: before[name].stamp for name in step.needs}
    found = rests_on(step, shape, project, keys, digest)
    output = Output(project=project, step=step.name, key=key_of(found))
    made, begun = output.made(), output.begun()
    # What was begun beside a whole output was asked for: it goes on.
    goes_on = bool(begun and begun.before == stamps)
    is_good = bool(made and (not made.exit_code or step.allow_findings))
    holds = bool(made and made.before == stamps and is_still_there(step, output))
    holds = holds and is_good and not goes_on and not forced and not (made and made.changed)
    return OutputInspection(
        output=output,
        rests_on=found,
        made=made if holds else None,
        goes_on=goes_on,
        why="" if holds else _why(output, found, stamps, made, runs, forced=forced, good=is_good),
    )


def newest(project: Project, name: str, runs: Sequence[ProjectRun]) -> Made | None:
    """Return the last output of a step that stands, whatever it rests on."""
    for run in _of(project, runs):
        for step in run.steps:
            if step.step == name and step.status in ("finished", "reused"):
                made = Output(project=project, step=name, key=step.key).made()
                if made:
                    return made
    return None


def _why(
    output: Output,
    now: Mapping[str, str],
    stamps: Mapping[str, str],
    made: Made | None,
    runs: Sequence[ProjectRun],
    *,
    forced: bool,
    good: bool,
) -> str:
    if forced:
        return FORCED
    if made and not good:
        return FOUND
    if made and made.changed:
        return f"{made.changed} while it ran"
    last = _last(output, runs)
    if made:
        anew = [name for name in stamps if made.before.get(name) != stamps[name]]
        ended = _ENDED.get(last.status if last else "", "what it made elsewhere is gone")
        return f"{' and '.join(anew)} ran anew" if anew else ended
    if last is None:
        return FIRST
    changes = change_words(last.rests_on, now)
    return changes or _ENDED.get(last.status, "its output is gone")


def _last(output: Output, runs: Sequence[ProjectRun]) -> StepRun | None:
    """Return how the step was last looked at."""
    steps = (one for run in _of(output.project, runs) for one in run.steps)
    return next((one for one in steps if one.step == output.step and one.key), None)


def _of(project: Project, runs: Sequence[ProjectRun]) -> list[ProjectRun]:
    """Return runs of this project, newest first.

    Behind them, where only its folder gives it a name, all others: the folder may have had another.
    """
    own = [one for one in runs if one.project == project.name]
    others = [one for one in runs if one.project != project.name]
    return own if project.is_named else [*own, *others]
