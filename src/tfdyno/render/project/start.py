"""A project's file to begin with: the usual steps for one workload, each with what it is for."""

from __future__ import annotations

from tfdyno.core.base.toml_text import quoted
from tfdyno.render.base.template import environment


def project_start(*, name: str, workload: str, trains: bool) -> str:
    """Return the text of a ``project.toml``.

    Args:
        name: Of the project, and of the model in the store.
        workload: As every command takes it, relative to the file.
        trains: Whether the workload is trained; a model that is trained already is not.
    """
    found = environment()
    found.filters["toml"] = quoted
    page = found.get_template("project.toml.j2")
    return page.render(name=name, workload=workload, trains=trains) + "\n"
