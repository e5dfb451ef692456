"""A project's file to begin with: the usual steps for one workload, each with what it is for."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tfdyno.core.base.toml_text import quoted
from tfdyno.core.project.file import FILE
from tfdyno.view.base.template import environment
from tfdyno.view.base.text import WIDTH, pairs, wrapped

if TYPE_CHECKING:
    from tfdyno.core.project.project import Project


def project_start(*, name: str, workload: str, trains: bool) -> str:
    """The text of a ``project.toml``.

    Args:
        name: Of the project, and of the model in the store.
        workload: As every command takes it, relative to the file.
        trains: Whether the workload is trained; a model that is trained already is not.
    """
    plain = environment().overlay(autoescape=False)  # it is no HTML
    plain.filters["toml"] = quoted
    page = plain.get_template("project.toml.j2")
    return page.render(name=name, workload=workload, trains=trains) + "\n"


def start_text(project: Project, *, width: int = WIDTH) -> str:
    """What was written, and what to type next.

    Args:
        project: As it stands in its file.
        width: Columns of the screen.
    """
    steps = [step.name for step in project.steps]
    head = f"Wrote {project.file} with {len(steps)} steps: {', '.join(steps)}."
    run = (
        "tfdyno run"
        if str(project.file) == FILE
        else f"tfdyno run {shlex.quote(str(project.file))}"
    )
    rows = [("look", f"{run} --dry-run"), ("run", run)]
    return f"{wrapped(head, width=width)}\n\n{pairs(rows, width=width)}"
