"""Small projects of the user's own scripts, and runs of them, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.cli.project import step_commands
from tfdyno.jobs.project.run import RunReporter, RunRequest, run

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.project.project import ProjectRun

COPY = """
import json, os, sys, time
from pathlib import Path

source, target = map(Path, sys.argv[1:3])
target.parent.mkdir(parents=True, exist_ok=True)
target.write_text(source.read_text() + "+")
with open("ran.txt", "a") as log:
    log.write(target.name + "\\n")
print(json.dumps({"path": str(target), "headline": f"{len(target.read_text())} signs"}))
"""
"""Adds a sign to a file, and its name to ``ran.txt``."""
CHAIN = """
[project]
name = "chain"

[steps.a]
command = "python copy.py"
arguments = ["start.txt", "{output}/a.txt"]
inputs = ["start.txt"]

[steps.b]
command = "python copy.py"
arguments = ["{a}/a.txt", "{output}/b.txt"]

[steps.c]
command = "python copy.py"
arguments = ["{b.path}", "{output}/c.txt"]

[steps.other]
command = "recipe show"
set = ["seed=1"]
"""


def chain(folder: Path, text: str = CHAIN) -> Path:
    """Three steps that add a sign each, and one that none of them needs; the project's file."""
    write(folder, {"copy.py": COPY, "start.txt": "0", "project.toml": text})
    return folder / "project.toml"


def write(folder: Path, files: dict[str, str]) -> None:
    """Write files by their names."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def run_all(file: Path, told: RunReporter | None = None, **asked: Any) -> ProjectRun:
    """A run of the project."""
    return run(RunRequest(file=file, **asked), step_commands, told)


def statuses(found: ProjectRun) -> dict[str, str]:
    """Of each step."""
    return {step.step: step.status for step in found.steps}


def reasons(found: ProjectRun) -> dict[str, str]:
    """Why each step ran that did."""
    return {step.step: step.why for step in found.steps if step.why}


def output(file: Path, found: ProjectRun, step: str) -> Path:
    """The folder of a step's output."""
    (name,) = [one.output for one in found.steps if one.step == step]
    return file.parent / "tfdyno-project" / name
