"""Begin a project: the file that ``tfdyno run`` reads, for a script or model that is there."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import write_atomic
from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.file import project_from
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.render.project.start import project_start

if TYPE_CHECKING:
    from tfdyno.core.project.project import Project

NAMELESS = "model"
"""What a project is called whose folder's name has no letter or digit."""
_FILES = ("script", "function", "keras_file")
_LONGEST = 100


def start(file: Path, reference: str) -> Project:
    """Write a project's file with the usual steps.

    Args:
        file: Where; nothing may be there.
        reference: The workload, as a command takes it in the folder at hand.

    Returns:
        The project as it stands in the file.

    Raises:
        UsageError: There is a file already, the workload is none or brings no data, or the folder
            cannot be written.
    """
    if file.exists():
        raise UsageError(
            f"{file} is there already",
            remedy="tfdyno run runs it; to begin anew, name another file before --init",
        )
    if not file.parent.is_dir():
        raise UsageError(f"there is no folder {file.parent}", remedy="make it first")
    kind = parse_reference(reference).kind
    if kind == "application":
        raise UsageError(
            f"{reference} brings no data to train on",
            remedy="give a script, file.py:function or a .keras file; "
            f"tfdyno advise {reference} says what its training would cost",
        )
    name = _name(file.resolve().parent.name)
    workload = _from(file.parent, reference) if kind in _FILES else reference
    text = project_start(name=name, workload=workload, trains=kind != "keras_file")
    write_atomic(file, text.encode())
    return project_from(tomllib.loads(text), file)


def _from(folder: Path, reference: str) -> str:
    """Return a reference to a file as it is typed in another folder."""
    place, colon, function = reference.partition(":")
    if not Path(place).is_file():
        return reference  # package.module:function
    return f"{os.path.relpath(place, folder)}{colon}{function}"


def _name(folder: str) -> str:
    """Return a folder's name as the model store takes names."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", folder).strip("-._")
    return plain[:_LONGEST] or NAMELESS
