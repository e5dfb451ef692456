"""What a step's output rests on: its options, the files that they name, what came before."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.version import VERSION
from tfdyno.core.project.project import FOLDER
from tfdyno.core.project.step_key import change_words
from tfdyno.core.project.step_reference import has_reference
from tfdyno.jobs.project._files import files_of
from tfdyno.probe.files.content import content_of
from tfdyno.probe.python.versions import versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from tfdyno.core.project.project import Project, ProjectStep
    from tfdyno.core.project.step_command import CommandShape


_FILE = "file "
_SECRETS = frozenset({"token"})
_SECRET_FLAGS = frozenset({"--token"})
_NO_TEXT = frozenset({"true", "false", "[]"})
"""Texts that look like another kind of value."""
_KEEPS_MODELS = ("models", "serve", "export", "edge")
"""First words of commands that the model store may answer."""
FRAMEWORKS = ("tensorflow", "tensorflow-cpu", "keras")


def rests_on(
    step: ProjectStep,
    shape: CommandShape | None,
    project: Project,
    before: Mapping[str, str],
    digest: Callable[[Path], str],
) -> dict[str, str]:
    """Return all that the output depends on, by name, for ``StepRun.rests_on``.

    Args:
        step: The step.
        shape: Of its command; None: a script of the user's.
        project: Whose folder the files are relative to.
        before: The key of each step that it needs.
        digest: Of one file.

    Raises:
        UsageError: A file that it names is not there, or cannot be read.
    """
    found = {"command": step.command}
    for kind, options in (("option", step.options), ("load", step.load)):
        for name, value in options.items():
            # A script tells --batch_size from --batch-size; no command of ours does.
            found[f"{kind} {name.replace('_', '-') if shape else name}"] = _value(name, value)
    if project.store and step.command.split()[0] in _KEEPS_MODELS:
        found["store"] = project.store
    for path in files_of(step, shape, project.file.parent):
        found[f"{_FILE}{path}"] = _content(project.file.parent / path, digest)
    found |= {f"step {name}": before[name] for name in step.needs}
    return found | {"tfdyno": VERSION} | versions_of(step, shape, project.file.parent)


def changed_files(rests_on: Mapping[str, str], root: Path, digest: Callable[[Path], str]) -> str:
    """Say which files of a key are not as they were; empty: all are.

    Args:
        rests_on: As it was found before.
        root: The project's folder.
        digest: Of one file.
    """
    before = {name: one for name, one in rests_on.items() if name.startswith(_FILE)}
    now = {}
    for name in before:
        with contextlib.suppress(UsageError):  # it is gone
            now[name] = _content(root / name.removeprefix(_FILE), digest)
    return change_words(before, now)


def _content(path: Path, digest: Callable[[Path], str]) -> str:
    return content_of(path, digest, without=frozenset({FOLDER}))


def _value(name: str, value: object) -> str:
    """Return a value as words of a command line, such that others have other words."""
    if name in _SECRETS:
        return _digest(value)
    items = value if isinstance(value, list) else [value]
    return " ".join(_quoted(one) for one in without_secrets(items, _digest)) or "[]"


def _quoted(value: object) -> str:
    """Quote one word where it could be taken for more than one, none, or a flag."""
    if not isinstance(value, str):
        return str(value).lower() if isinstance(value, bool) else str(value)
    is_plain = bool(value) and not any(one.isspace() or one in "'\"\\" for one in value)
    if is_plain and value not in _NO_TEXT:
        return value
    return "'" + value.replace("'", "'\"'\"'") + "'"


def without_secrets(words: Iterable[object], hide: Callable[[object], str]) -> Iterator[object]:
    """Yield words of a command line, in place of those that are nobody's business what hides them.

    Args:
        words: The words.
        hide: Returns what stands for a secret.
    """
    before = ""
    for one in words:
        head, equals, rest = str(one).partition("=")
        if before in _SECRET_FLAGS:
            yield hide(one)
        else:
            yield f"{head}={hide(rest)}" if equals and head in _SECRET_FLAGS else one
        before = str(one)


def _digest(value: object) -> str:
    return hashlib.sha256(str(value).encode()).hexdigest()[:12]


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
