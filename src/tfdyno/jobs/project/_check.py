"""The commands of a project's steps, checked before anything runs."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Protocol

from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.step_command import (
    SCRIPT,
    CommandShape,
    check_options,
    check_value,
    option_words,
)
from tfdyno.core.project.step_outputs import check_places, with_outputs
from tfdyno.core.project.step_reference import filled, has_reference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfdyno.core.project.project import Project, ProjectStep

LOAD = "bench --serve"
SERVE = "serve"
URL = "http://127.0.0.1:1/v1/models/model"
_HELD = {"port", "host", "setup", "render"}


class Commands(Protocol):
    """What the command line knows of its commands."""

    def shape_of(self, name: str) -> CommandShape:
        """Return what a command takes; raises ``UsageError``."""

    def check_words(self, shape: CommandShape, words: Sequence[str]) -> None:
        """Read the words of a command without running it; raises ``UsageError``."""


def shapes_of(project: Project, commands: Commands) -> dict[str, CommandShape | None]:
    """Return the shape of each step's command; None for a script of the user's.

    Raises:
        UsageError: A command, an option or a value is wrong; the sentence names the step.
    """
    found: dict[str, CommandShape | None] = {}
    for step in project.steps:
        with told_of(step):
            found[step.name] = _checked(step, commands)
    return found


@contextlib.contextmanager
def told_of(step: ProjectStep) -> Iterator[None]:
    """Name the step in what is refused within the block."""
    try:
        yield
    except UsageError as error:
        head = f"step {step.name}: "
        what = error.what if error.what.startswith(head) else f"{head}{error.what}"
        raise UsageError(what, why=error.why, remedy=error.remedy) from None


def _checked(step: ProjectStep, commands: Commands) -> CommandShape | None:
    first, _, rest = step.command.partition(" ")
    if first == SCRIPT:
        if not rest.endswith(".py"):
            raise UsageError(f"{step.command} runs no script", remedy="write python FILE.py")
        for name, value in step.options.items():
            check_value(step.name, name, value)
        return None
    shape = commands.shape_of(step.command)
    options = step.options
    check_options(step.name, options, shape)
    check_places(step.name, options, shape)
    if step.command == SERVE:
        for name in options:
            if name.replace("_", "-") in _HELD:
                raise UsageError(f"{name} cannot be given",
                                 why="a step serves on this machine, on a free port")  # fmt: skip
        load = commands.shape_of(LOAD)
        check_options(step.name, step.load, load)
        check_places(step.name, step.load, load)
        _read(step.load | {"serve": URL}, load, commands)
    _read(with_outputs(options, shape, "output"), shape, commands)
    return shape


def _read(options: Mapping[str, object], shape: CommandShape, commands: Commands) -> None:
    """Let the command read its words; a reference stands for a text, and not for a number."""
    known: dict[str, object] = {}
    for name, value in options.items():
        parameter = shape.parameter(name)
        if not has_reference(value):
            known[name] = value
        elif parameter and parameter.is_text:
            known[name] = filled(value, lambda step, _keys: step)
    commands.check_words(shape, option_words(known, shape))
