"""The commands that a project's steps may run, as click knows them."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING

import click

from tfdyno.cli.options import Filled, NewFile
from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.step_command import CommandShape, Parameter, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

LOAD = "bench --serve"
_OTHERS = ("run", "runs", "report", "node")
"""Commands that are no step: they run steps, tell of them, or are called by programs."""
_WRITES = frozenset({"output", "store", "write", "write_layout", "folder", "save_env",
                     "destination"})  # fmt: skip
_TEXTS = (click.types.StringParamType, click.Path, Filled, NewFile)


def shape_of(name: str) -> CommandShape:
    """Return what a command takes.

    Args:
        name: As in a project's file: ``train``, ``models add``, ``bench --serve``.

    Raises:
        UsageError: There is no such command, or it has no ``--json``.
    """
    command = _command(name)
    if not any("--json" in one.opts for one in command.params):
        raise UsageError(f"{name} cannot be a step", why="it prints no JSON")
    words = tuple(word for word in name.split() if not word.startswith("-"))
    parameters = tuple(_parameter(one) for one in command.params)
    return CommandShape(name=name, words=words, parameters=parameters)


def check_words(shape: CommandShape, words: Sequence[str]) -> None:
    """Let click read the words of a command, without running it.

    Raises:
        UsageError: A value is wrong, or something is missing.
    """
    command = _command(shape.name)
    own = list(words[len(shape.words) :])
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            command.make_context(shape.name, own)
    except click.exceptions.Exit:
        return
    except click.UsageError as error:
        text = " ".join(error.format_message().split())
        raise UsageError(text[:1].lower() + text[1:]) from None


def step_commands() -> tuple[str, ...]:
    """Return the names of all that can be a step."""
    from tfdyno.cli.main import tfdyno

    found: list[str] = []
    context = click.Context(tfdyno)
    for name in tfdyno.list_commands(context):
        command = None if name in _OTHERS else tfdyno.get_command(context, name)
        if isinstance(command, click.Group):
            found += [f"{name} {one}" for one in command.list_commands(context)]
        elif command:
            found.append(name)
    return (*found, LOAD)


def _command(name: str) -> click.Command:
    """Return the click command of a name; raises ``UsageError``."""
    from tfdyno.cli.main import tfdyno

    if name == LOAD:
        from tfdyno.cli.measure.bench_serve import bench_serve

        return bench_serve
    first, *rest = name.split()
    if first in _OTHERS:
        known = ", ".join(step_commands())
        raise UsageError(f"{first} cannot be a step", remedy=f"there are {known}")
    found = tfdyno.get_command(click.Context(tfdyno), first)
    for word in rest:
        found = found.get_command(click.Context(found), word) if isinstance(
            found, click.Group) else None  # fmt: skip
    if found is None:
        raise UsageError(f"there is no command {name!r}", remedy=nearest(name, step_commands()))
    if isinstance(found, click.Group):
        inner = ", ".join(f"{name} {one}" for one in found.list_commands(click.Context(found)))
        raise UsageError(f"{name} alone is no command", remedy=f"there are {inner}")
    return found


def _parameter(one: click.Parameter) -> Parameter:
    """Return one of click's parameters, by the names that a step gives it."""
    is_file = isinstance(one.type, NewFile)
    writes = is_file or one.name in _WRITES
    if isinstance(one, click.Argument):
        name = str(one.name).replace("_", "-")
        more = ("arguments",) if name == "script-arguments" else ()
        return Parameter(
            names=(name, *more), is_multiple=one.nargs == -1, writes=writes,
        )  # fmt: skip
    long = [opt for opt in one.opts if opt.startswith("--")]
    return Parameter(
        names=tuple(opt[2:] for opt in long),
        flag=long[0],
        off=next(iter(one.secondary_opts), ""),
        is_flag=bool(getattr(one, "is_flag", False)),
        is_multiple=one.multiple,
        writes=writes,
        is_text=isinstance(one.type, _TEXTS),
    )
