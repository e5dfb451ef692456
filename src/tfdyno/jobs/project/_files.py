"""The files that a step reads: what it names, in whole or within a word, and what those import."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.step_command import SCRIPT
from tfdyno.core.project.step_reference import has_reference, texts
from tfdyno.probe.base.near import no_such
from tfdyno.probe.python.local_modules import local_modules, modules_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.project.project import ProjectStep
    from tfdyno.core.project.step_command import CommandShape

_MODULE = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):[A-Za-z_]\w*(?::\w*)?")
"""``package.module:function``, which is imported from the project's folder."""


def files_of(step: ProjectStep, shape: CommandShape | None, root: Path) -> tuple[str, ...]:
    """Return files and folders that the step reads, relative to the project, each once.

    Args:
        step: The step.
        shape: Of its command; None: a script of the user's.
        root: The project's folder.

    Raises:
        UsageError: A file of ``inputs``, or a Python file that an option names, is not there.
    """
    found: dict[str, None] = {}
    for name in (*step.inputs, *script_of(step)):
        if not _exists(root / name):
            raise _missing(step, root / name)
        found |= dict.fromkeys(_with_modules(name, root))
    for text in _named(step, shape):
        places = _places(text, root)
        name = text.partition(":")[0]
        if not places and name.endswith(".py") and not name.startswith("-"):
            raise _missing(step, root / name)
        for place in places:
            found |= dict.fromkeys(_with_modules(place, root))
        if module := _MODULE.fullmatch(text):
            paths = modules_of(module[1], root)
            found |= dict.fromkeys(str(path.relative_to(root)) for path in paths)
    return tuple(found)


def script_of(step: ProjectStep) -> tuple[str, ...]:
    """Return the script of a ``python FILE.py`` step."""
    first, _, script = step.command.partition(" ")
    return (script,) if first == SCRIPT and script else ()


def _named(step: ProjectStep, shape: CommandShape | None) -> Iterator[str]:
    """List all texts of options that may be files to be read."""
    for options in (step.options, step.load):
        for name, value in options.items():
            parameter = shape.parameter(name) if shape and options is step.options else None
            if not (parameter and (parameter.writes or parameter.is_flag)):
                yield from (text for text in texts(value) if text and not has_reference(text))


def _places(text: str, root: Path) -> list[str]:
    """List paths in a text: ``train.py`` of ``train.py:make``, ``c.yaml`` of ``--c=c.yaml``.

    A text that is a path whole is no list of others.
    """
    if whole := _place(text, root):
        return [whole]
    words = [text.partition("=")[2], *text.split(",")]
    words += [word.partition("=")[2] for word in text.split(",")]
    return [place for word in words if word and (place := _place(word, root))]


def _place(text: str, root: Path) -> str:
    """Return the path that a text is, or is up to its colon; empty: there is none."""
    names = (text, text.partition(":")[0])
    return next((one for one in names if one.strip("./") and _exists(root / one)), "")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long for a name, or not one
        return False


def _with_modules(name: str, root: Path) -> Iterator[str]:
    """Yield a file, and where it is Python the modules beside it that it imports."""
    yield name
    if name.endswith(".py"):
        folder = Path(name).parent
        for module in local_modules(root / name):
            yield str(folder / module.relative_to((root / name).parent))


def _missing(step: ProjectStep, path: Path) -> UsageError:
    found = no_such(path, what="file or folder")
    remedy = found.remedy
    if step.needs:
        names = " and ".join(step.needs)
        remedy = f"make it again with --force {step.needs[-1]}, if {names} wrote it"
    return UsageError(f"step {step.name}: {found.what}", why=found.why, remedy=remedy)
