"""Versions of the frameworks that a step runs with, in whatever interpreter that is."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.step_reference import has_reference

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.project.project import ProjectStep
    from tfdyno.core.project.step_command import CommandShape

FRAMEWORKS = ("tensorflow", "tensorflow-cpu", "keras")
_LIMIT_S = 60.0
_ASK = """
import sys
from importlib.metadata import PackageNotFoundError, version
for name in sys.argv[1:]:
    try:
        print(name, version(name))
    except PackageNotFoundError:
        pass
"""


def versions_of(step: ProjectStep, shape: CommandShape | None, root: Path) -> dict[str, str]:
    """Return versions of TensorFlow and Keras, as far as they are installed; neither is imported.

    Args:
        step: The step.
        shape: Of its command; None: a script of the user's, which runs in our interpreter.
        root: The project's folder.
    """
    if shape is None or not shape.parameter("python"):
        return _own()
    named = step.options.get("python")
    if isinstance(named, str) and not has_reference(named):
        place = str((root / named).absolute()) if "/" in named else named
        return _asked(shutil.which(place) or "")
    return _asked(_active()) if named is None else {}


def _own() -> dict[str, str]:
    found = {}
    for name in FRAMEWORKS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@functools.cache
def _active() -> str:
    """Return the interpreter that commands take if nothing is said."""
    from tfdyno.jobs.choose.trace import interpreter_named

    try:
        return interpreter_named("")
    except (OSError, UsageError, subprocess.SubprocessError):
        return sys.executable


@functools.cache
def _asked(python: str) -> dict[str, str]:
    """Return what an interpreter says; nothing where there is none, as its command tells better."""
    if python == sys.executable:
        return _own()
    if not python:
        return {}
    command = [python, "-c", _ASK, *FRAMEWORKS]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_LIMIT_S
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    return {name: found for name, _, found in lines if name in FRAMEWORKS}
