"""``tfdyno run``: a project's steps, only those that something has changed for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.deploy.serve import YES, offer_setup
from tfdyno.cli.options import JSON, QUIET, Filled
from tfdyno.cli.progress import CLEAR, progress_line, tell

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.project.project import ProjectRun, StepRun

BROKEN = 3


@click.command()
@click.argument("project", type=click.Path(path_type=Path), default=Path("project.toml"))
@click.option(
    "--only", type=Filled(), multiple=True, metavar="STEP",
    help="This step and what it rests on; many.",
)  # fmt: skip
@click.option(
    "--from", "begin", type=Filled(), metavar="STEP",
    help="This step and all that rest on it; what they need is taken as it was made last, changed "
    "or not.",
)  # fmt: skip
@click.option(
    "--force", type=Filled(), multiple=True, metavar="STEP",
    help="Make this step again, and all that rest on it, though nothing changed; many.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Say what would run, and why; nothing runs.")
@click.option(
    "--init", "workload", type=Filled(), metavar="WORKLOAD",
    help="Write PROJECT with the usual steps for this script or model; nothing runs.",
)  # fmt: skip
@YES
@JSON
@QUIET
def run(**given: Any) -> int:
    """Run a project's steps, from data to service; only what changed.

    PROJECT is a TOML file, project.toml without it. Each table [steps.NAME] is a command of tfdyno
    with its options, or command = "python FILE.py". {other} in an option is the folder of another
    step's output, {other.key} a value of what it printed with --json.

    A step whose options, files, steps before it and versions are as they were is not run again.
    Outputs and history lie in tfdyno-project beside the file. After Ctrl-C, a failure or a kill
    the same command goes on.
    """
    if given["workload"]:
        _begin(given)
        return 0
    from tfdyno.cli.project import step_commands
    from tfdyno.jobs.project.run import RunReporter, RunRequest, needed_server, preview
    from tfdyno.jobs.project.run import run as run_project

    question = RunRequest(
        file=given["project"], only=given["only"], begin=given["begin"] or "", force=given["force"]
    )
    if not given["dry_run"]:
        offer_setup(needed_server(question, step_commands), given)
    with progress_line(quiet=given["quiet"], verbose=False) as progress:
        shown = _Shown(progress, quiet=given["quiet"])
        told = RunReporter(begun=shown.begun, reads=shown.reads, said=shown.said, waits=shown.waits,
                    ended=shown.ended)  # fmt: skip
        asked = preview if given["dry_run"] else run_project
        found = asked(question, step_commands, told)
    if given["dry_run"]:
        _print(found, given, dry=True)
        return 0
    _print(found, given, dry=False)
    return _code(found)


def _begin(given: dict[str, Any]) -> None:
    """Write a project's file and say what to do with it."""
    from tfdyno.core.base.errors import UsageError
    from tfdyno.jobs.project.start import start
    from tfdyno.view.base.text import terminal_width
    from tfdyno.view.project.start import start_text

    for name, option in (("only", "--only"), ("begin", "--from"), ("force", "--force"),
                         ("dry_run", "--dry-run")):  # fmt: skip
        if given[name]:
            raise UsageError(f"--init and {option} contradict", why="--init runs nothing",
                             remedy="leave one of them out")  # fmt: skip
    project = start(given["project"], given["workload"])
    if given["as_json"]:
        from tfdyno.core.base.codec import to_json

        steps = [step.name for step in project.steps]
        click.echo(to_json({"file": str(project.file), "steps": steps}, indent=2).decode())
        return
    click.echo(start_text(project, width=terminal_width()))


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


def _print(found: ProjectRun, given: dict[str, Any], *, dry: bool) -> None:
    if given["as_json"]:
        from tfdyno.core.base.codec import to_json

        click.echo(to_json(found, indent=2).decode())
        return
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.project.run_text import run_text

    folder = given["project"].parent
    text = run_text(found, folder=folder, dry=dry, width=terminal_width(), colour=colour_wanted())
    click.echo(text)


def _code(found: ProjectRun) -> int:
    """That of the command that failed, where it is one of ours."""
    if found.status == "finished":
        return 0
    code = next((one.exit_code for one in found.steps if one.status == "failed"), BROKEN)
    return code if 1 <= code <= BROKEN else BROKEN
