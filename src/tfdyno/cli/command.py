"""Commands as functions of typed options: a dataclass declares what click reads, and holds it."""

from __future__ import annotations

from dataclasses import MISSING, field, fields
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

import click

from tfdyno.cli.answer import Answer, tell
from tfdyno.words.base.language import ENGLISH, language_of_reader, speaking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tfdyno.core.base.language import Language

    Answers = Callable[["Options"], Answer | int]

Value = TypeVar("Value")
Options = TypeVar("Options")
TEXT = click.STRING
PATH = click.Path(path_type=Path)
# What declares the parameter of a field, or the dataclass that stands in it.
_DECLARES, _GROUP = "declares", "group"


@overload
def option(
    *names: str, type: click.ParamType[Value], required: Literal[True], help: str,
    metavar: str | None = None,
) -> Value: ...  # fmt: skip
@overload
def option(
    *names: str, type: click.ParamType[Value], default: Value, help: str,
    show_default: bool = False, metavar: str | None = None,
) -> Value: ...  # fmt: skip
@overload
def option(
    *names: str, type: click.ParamType[Value], help: str,
    metavar: str | None = None, envvar: str | None = None,
) -> Value | None: ...  # fmt: skip
def option(*names: str, **settings: Any) -> Any:
    """Declare an option as the field of a dataclass; without a default None if not given.

    Args:
        names: As they are typed; without them that of the field.
        settings: As click takes them.
    """
    usual = MISSING if settings.get("required") else settings.get("default")
    return _declared(usual, partial(_option, names, settings))


def many(
    *names: str, type: click.ParamType[Value], help: str, metavar: str | None = None
) -> tuple[Value, ...]:
    """Declare an option that may be repeated."""
    settings = {"type": type, "help": help, "metavar": metavar, "multiple": True}
    return cast("tuple[Value, ...]", _declared((), partial(_option, names, settings)))


@overload
def flag(*names: str, help: str, hidden: bool = False) -> bool: ...
@overload
def flag(*names: str, help: str, default: Literal[True], show_default: bool) -> bool: ...
@overload
def flag(*names: str, help: str, default: None) -> bool | None: ...
def flag(*names: str, **settings: Any) -> Any:
    """Declare an option without a value, or a pair as ``--spot/--no-spot``."""
    settings = {"is_flag": True, **settings}
    return _declared(settings.get("default", False), partial(_option, names, settings))


@overload
def argument(*, type: click.ParamType[Value], metavar: str | None = None) -> Value: ...
@overload
def argument(*, type: click.ParamType[Value], default: object) -> Value: ...
@overload
def argument(
    *, type: click.ParamType[Value], required: Literal[False], metavar: str | None = None
) -> Value | None: ...
@overload
def argument(
    *, type: click.ParamType[Value], nargs: Literal[-1], required: bool = False,
    metavar: str | None = None,
) -> tuple[Value, ...]: ...  # fmt: skip
def argument(**settings: Any) -> Any:
    """Declare what is typed without a name."""
    return _declared(MISSING, lambda name: click.Argument([name], **settings))


def group(options: type[Options]) -> Options:
    """Declare what several commands share: all options of a dataclass, at this place."""
    return cast("Options", field(metadata={_GROUP: options}))


def _declared(usual: object, declares: Callable[[str], click.Parameter]) -> object:
    return field(default=usual, metadata={_DECLARES: declares})


def _option(names: tuple[str, ...], settings: dict[str, Any], name: str) -> click.Option:
    return click.Option([*(names or [f"--{name.replace('_', '-')}"]), name], **settings)


def parameters(options: type) -> Iterator[click.Parameter]:
    """List what a dataclass declares, in the order of its fields."""
    for one in fields(cast("Any", options)):
        if shared := one.metadata.get(_GROUP):
            yield from parameters(shared)
        else:
            yield one.metadata[_DECLARES](one.name)


def filled(options: type[Options], given: Mapping[str, object]) -> Options:
    """Return the dataclass with what click has read."""
    values = {}
    for one in fields(cast("Any", options)):
        shared = one.metadata.get(_GROUP)
        values[one.name] = filled(shared, given) if shared else given[one.name]
    return options(**values)


def values_of(options: object) -> dict[str, Any]:
    """Return what click has read, by name."""
    found: dict[str, Any] = {}
    for one in fields(cast("Any", options)):
        value = getattr(options, one.name)
        found |= values_of(value) if _GROUP in one.metadata else {one.name: value}
    return found


@cache
def option_names(options: type) -> dict[str, str]:
    """Return how options are typed, by the names of their fields."""
    found = {str(one.name): one.opts for one in parameters(options)}
    return {name: next((o for o in opts if o[:2] == "--"), opts[0]) for name, opts in found.items()}


def given(options: object, *names: str) -> list[str]:
    """Return those of some options that have a value, as they are typed."""
    values, typed = values_of(options), option_names(cast("Any", type(options)))
    empty = (None, (), "")  # not 0, which is as good as any number
    return [
        typed[name] for name in names if values[name] not in empty and values[name] is not False
    ]


def command(
    options: type[Options],
    name: str = "",
    *,
    under: click.Group | None = None,
    cls: type[click.Command] = click.Command,
) -> Callable[[Answers[Options]], click.Command]:
    """Make a command of a function, which returns its answer, or an exit code where it told itself.

    Args:
        options: What is declared, and what the function is called with.
        name: Of the command; without it that of the function.
        under: The group that it belongs to.
        cls: What it becomes.
    """

    def decorate(function: Answers[Options]) -> click.Command:
        made = cls(
            name or function.__name__.replace("_", "-"),
            callback=partial(_run, options, function),
            params=list(parameters(options)),
            help=function.__doc__,
        )
        if under:
            under.add_command(made)
        return made

    return decorate


def _run(options: type[Any], function: Answers[Any], **given: Any) -> int:
    with speaking(_language(given)):
        found = function(filled(options, given))
        return tell(found, as_json=given["as_json"]) if isinstance(found, Answer) else found


def _language(given: Mapping[str, Any]) -> Language:
    """Return the language of an answer: of JSON English, where nobody asks for another."""
    if "lang" not in given:
        return ENGLISH
    asked: Language | None = given["lang"]
    return asked or (ENGLISH if given["as_json"] else language_of_reader())
