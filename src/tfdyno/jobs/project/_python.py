"""Versions of the frameworks that a step runs with, in whatever interpreter that is."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.step_reference import has_reference
from tfdyno.probe.python.versions import versions

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.project.project import ProjectStep
    from tfdyno.core.project.step_command import CommandShape

FRAMEWORKS = ("tensorflow", "tensorflow-cpu", "keras")


def versions_of(step: ProjectStep, shape: CommandShape | None, root: Path) -> dict[str, str]:
    """Return versions of TensorFlow and Keras, as far as they are installed; neither is imported.

    Args:
        step: The step.
        shape: Of its command; None: a script of the user's, which runs in our interpreter.
        root: The project's folder.
    """
    if shape is None or not shape.parameter("python"):
        return versions(*FRAMEWORKS)
    named = step.options.get("python")
    if isinstance(named, str) and not has_reference(named):
        place = str((root / named).absolute()) if "/" in named else named
        return versions(*FRAMEWORKS, python=shutil.which(place) or "")
    return versions(*FRAMEWORKS, python=_active()) if named is None else {}


@functools.cache
def _active() -> str:
    """Return the interpreter that commands take if nothing is said."""
    from tfdyno.jobs.choose.trace import interpreter_named

    try:
        return interpreter_named("")
    except (OSError, UsageError, subprocess.SubprocessError):
        return sys.executable
