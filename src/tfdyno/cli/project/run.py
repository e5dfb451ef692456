"""``tfdyno run``: a project's steps, only those that something has changed for."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import PATH, argument, command, flag, given, many, option
from tfdyno.cli.deploy.serve import YES, offer_setup
from tfdyno.cli.options import JSON, QUIET, Filled, Telling
from tfdyno.cli.progress import CLEAR, progress_line, tell
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.project.project import ProjectRun, StepRun

BROKEN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    project: Path = argument(type=PATH, default=Path("project.toml"))
    only: tuple[str, ...] = many(
        type=Filled(), metavar="STEP", help="This step and what it rests on; many."
    )
    begin: str | None = option(
        "--from", type=Filled(), metavar="STEP",
        help="This step and all that rest on it; what they need is taken as it was made last, "
        "changed or not.",
    )  # fmt: skip
    force: tuple[str, ...] = many(
        type=Filled(), metavar="STEP",
        help="Make this step again, and all that rest on it, though nothing changed; many.",
    )  # fmt: skip
    dry_run: bool = flag(help="Say what would run, and why; nothing runs.")
    workload: str | None = option(
        "--init", type=Filled(), metavar="WORKLOAD",
        help="Write PROJECT with the usual steps for this script or model; nothing runs.",
    )  # fmt: skip
    yes: bool = YES
    as_json: bool = JSON
    quiet: bool = QUIET


@command(_Options)
def run(options: _Options) -> Answer:
    """Run a project's steps, from data to service; only what changed.

    PROJECT is a TOML file, project.toml without it. Each table [steps.NAME] is a command of tfdyno
    with its options, or command = "python FILE.py". {other} in an option is the folder of another
    step's output, {other.key} a value of what it printed with --json.

    A step whose options, files, steps before it and versions are as they were is not run again.
    Outputs and history lie in tfdyno-project beside the file. After Ctrl-C, a failure or a kill
    the same command goes on.
    """
    if options.workload:
        return _begin(options, options.workload)
    from tfdyno.cli.project import step_commands
    from tfdyno.jobs.project.run import RunReporter, RunRequest, needed_server, preview
    from tfdyno.jobs.project.run import run as run_project
    from tfdyno.view.project.run_text import run_text

    request = RunRequest(
        file=options.project, only=options.only, begin=options.begin or "", force=options.force
    )
    if not options.dry_run:
        told = Telling(as_json=options.as_json, quiet=options.quiet)
        offer_setup(needed_server(request, step_commands), told, yes=options.yes)
    with progress_line(quiet=options.quiet, verbose=False) as progress:
        shown = _Shown(progress, quiet=options.quiet)
        reporter = RunReporter(begun=shown.begun, reads=shown.reads, said=shown.said,
                               waits=shown.waits, ended=shown.ended)  # fmt: skip
        asked = preview if options.dry_run else run_project
        found = asked(request, step_commands, reporter)
    return Answer(
        document=lambda: found,
        text=partial(run_text, found, folder=options.project.parent, dry=options.dry_run),
        exit_code=0 if options.dry_run else _code(found),
    )


def _begin(options: _Options, workload: str) -> Answer:
    """Write a project's file and say what to do with it."""
    from tfdyno.jobs.project.start import start
    from tfdyno.view.project.run_text import start_text

    for name in given(options, "only", "begin", "force", "dry_run"):
        raise UsageError(f"--init and {name} contradict", why="--init runs nothing",
                         remedy="leave one of them out")  # fmt: skip
    project = start(options.project, workload)
    steps = [step.name for step in project.steps]
    return Answer(
        document=lambda: {"file": str(project.file), "steps": steps},
        text=lambda width, **_: start_text(project, width=width),
    )


class _Shown:
    """What is told on stderr while steps run: a line for each, and what the one at work says."""

    def __init__(self, progress: Callable[[str], None], *, quiet: bool) -> None:
        self.progress, self.quiet = progress, quiet
        self.title = ""

    def begun(self, step: StepRun, number: int, count: int) -> None:
        self.title = f"{step.step} ({number} of {count})"
        self._line(f"{self.title}: {step.why}")
        self.progress(self.title)

    def reads(self, file: str) -> None:
        self.progress(f"reading {file}")

    def waits(self, why: str) -> None:
        self._line(f"{self.title}: {why}")

    def said(self, line: str) -> None:
        self.progress(f"{self.title}: {line}")

    def ended(self, step: StepRun) -> None:
        from tfdyno.view.project.run_text import ended_words

        if step.status != "reused":
            self.progress("")
            self._line(ended_words(step))

    def _line(self, text: str) -> None:
        if not self.quiet:
            head = CLEAR if sys.stderr.isatty() else ""
            tell(f"{head}{text}\n")


def _code(found: ProjectRun) -> int:
    """Return the exit code of the command that failed, where it is one of ours."""
    if found.status == "finished":
        return 0
    code = next((one.exit_code for one in found.steps if one.status == "failed"), BROKEN)
    return code if 1 <= code <= BROKEN else BROKEN
