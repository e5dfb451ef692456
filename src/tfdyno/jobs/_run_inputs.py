"""What a step's output rests on: its options, the files that they name, what came before."""

from __future__ import annotations

import hashlib
import shlex
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno import __version__
from tfdyno.core.errors import UsageError
from tfdyno.core.project import FOLDER
from tfdyno.core.step_command import SCRIPT
from tfdyno.core.step_reference import has_reference, texts
from tfdyno.probe.content import content_of
from tfdyno.probe.local_modules import local_modules
from tfdyno.probe.near import no_such

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tfdyno.core.project import Project, Step
    from tfdyno.core.step_command import CommandShape

FRAMEWORKS = ("tensorflow", "tensorflow-cpu", "keras")
_SECRETS = frozenset({"token"})
_KEEPS_MODELS = ("models", "serve", "export", "edge")
"""First words of commands that the model store may answer."""


def rests_on(
    step: Step,
    shape: CommandShape | None,
    project: Project,
    before: Mapping[str, str],
    digest: Callable[[Path], str],
) -> dict[str, str]:
    """All that the output depends on, by name, for ``StepRun.rests_on``.

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
            found[f"{kind} {name.replace('_', '-')}"] = _value(name, value)
    if project.store and step.command.split()[0] in _KEEPS_MODELS:
        found["store"] = project.store
    for path in files_of(step, shape, project.file.parent):
        place = project.file.parent / path
        found[f"file {path}"] = content_of(place, digest, without=frozenset({FOLDER}))
    found |= {f"step {name}": before[name] for name in step.needs}
    return found | {"tfdyno": __version__} | frameworks()


def frameworks() -> dict[str, str]:
    """Versions of TensorFlow and Keras, as far as they are installed; neither is imported."""
    found = {}
    for name in FRAMEWORKS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def files_of(step: Step, shape: CommandShape | None, root: Path) -> tuple[str, ...]:
    """Files and folders that the step reads, relative to the project, each once.

    Raises:
        UsageError: A file of ``inputs``, or a Python file that an option names, is not there.
    """
    found: dict[str, None] = {}
    for name in (*step.inputs, *script_of(step)):
        if not (root / name).exists():
            raise _missing(step, root / name)
        found |= dict.fromkeys(_with_modules(name, root))
    for name in _named(step, shape):
        place = _place(name, root)
        if place:
            found |= dict.fromkeys(_with_modules(place, root))
        elif name.partition(":")[0].endswith(".py"):
            raise _missing(step, root / name.partition(":")[0])
    return tuple(found)


def script_of(step: Step) -> tuple[str, ...]:
    """The script of a ``python FILE.py`` step."""
    first, _, script = step.command.partition(" ")
    return (script,) if first == SCRIPT and script else ()


def _named(step: Step, shape: CommandShape | None) -> Iterator[str]:
    """All texts of options that may be files to be read."""
    for options in (step.options, step.load):
        for name, value in options.items():
            parameter = shape.parameter(name) if shape and options is step.options else None
            if not (parameter and (parameter.writes or parameter.is_flag)):
                yield from (text for text in texts(value) if text and not has_reference(text))


def _place(text: str, root: Path) -> str:
    """The path that a text names if there is one: ``train.py`` of ``train.py:make``."""
    for name in (text, text.partition(":")[0]):
        try:
            if name.strip("./") and (root / name).exists():
                return name
        except (OSError, ValueError):  # too long for a name, or not one
            continue
    return ""


def _with_modules(name: str, root: Path) -> Iterator[str]:
    """A file, and where it is Python the modules beside it that it imports."""
    yield name
    if name.endswith(".py"):
        folder = Path(name).parent
        for module in local_modules(root / name):
            yield str(folder / module.relative_to((root / name).parent))


def _missing(step: Step, path: Path) -> UsageError:
    found = no_such(path, what="file or folder")
    remedy = found.remedy
    if step.needs:
        names = " and ".join(step.needs)
        remedy = f"make it again with --force {step.needs[-1]}, if {names} wrote it"
    return UsageError(f"step {step.name}: {found.what}", why=found.why, remedy=remedy)


def _value(name: str, value: object) -> str:
    if name in _SECRETS:
        return hashlib.sha256(str(value).encode()).hexdigest()[:12]
    if isinstance(value, list):
        return " ".join(map(_quoted, map(str, value)))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(text: str) -> str:
    """One of several words; with quotes only where it could be taken for more than one, or none."""
    is_plain = bool(text) and not any(one.isspace() or one in "'\"\\" for one in text)
    return text if is_plain else shlex.quote(text)
