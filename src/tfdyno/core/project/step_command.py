"""What a command takes, and a step's options as the words of its command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

SCRIPT = "python"
"""First word of a step that runs the user's own script."""
OURS = ("json", "quiet", "verbose", "resume", "help")
"""Options that ``tfdyno run`` gives by itself."""
ARGUMENTS = "arguments"
"""The arguments of a script, and of a workload that is one: words behind its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One option or positional argument of a command."""

    names: tuple[str, ...]
    """The names as a step may give them, without dashes, the first as it is shown: ``batch-size``.
    """
    flag: str = ""
    """``--batch-size``; empty: positional."""
    off: str = ""
    """``--no-measure``, where a flag has an opposite."""
    is_flag: bool = False
    is_multiple: bool = False
    """Whether an option is given many times, or a positional takes all words that are left."""
    writes: bool = False
    """Whether it names what is written, not what is read."""
    is_text: bool = True
    """Whether any text will do, as far as the command line can tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandShape:
    """One command that a step may run."""

    name: str
    """The name as in the project's file: ``models add``, ``bench --serve``."""
    words: tuple[str, ...]
    """The words as on the command line."""
    parameters: tuple[Parameter, ...]

    def parameter(self, name: str) -> Parameter | None:
        """Return the one that a step calls so; dashes and underscores are the same."""
        plain = name.replace("_", "-")
        return next((one for one in self.parameters if plain in one.names), None)


def nearest(name: str, names: tuple[str, ...]) -> str:
    """Suggest: ``did you mean …?``, or what there is."""
    there = f"there are {', '.join(names)}"
    return did_you_mean(name.replace("_", "-"), names, cutoff=0.6, most=2, otherwise=there)


def check_options(step: str, options: Mapping[str, object], shape: CommandShape) -> None:
    """Refuse options that the command does not have.

    Raises:
        UsageError: An option is unknown, given twice, or has a value of a kind that no command
            line has; the sentence names the step.
    """
    known = tuple(p.names[0] for p in shape.parameters if p.names[0] not in OURS)
    seen: dict[Parameter, str] = {}
    for name, value in options.items():
        parameter = shape.parameter(name)
        if name.replace("_", "-") in OURS:
            raise UsageError(f"step {step}: {name} cannot be given",
                             why="tfdyno run gives it itself", remedy="leave it out")  # fmt: skip
        if parameter is None:
            raise UsageError(
                f"step {step}: {shape.name} has no option {name}", remedy=nearest(name, known)
            )
        if parameter in seen:
            raise UsageError(f"step {step}: {name} and {seen[parameter]} are the same option",
                             remedy="leave one of them out")  # fmt: skip
        seen[parameter] = name
        check_value(step, name, value)
        if value is not False and parameter.is_flag != isinstance(value, bool):
            what = "true or false" if parameter.is_flag else "a value, not true or false"
            raise UsageError(f"step {step}: {name} takes {what}")


def check_value(step: str, name: str, value: object) -> None:
    """Refuse what cannot stand on a command line; raises ``UsageError``."""
    items = value if isinstance(value, list) else [value]
    for one in items:
        if not isinstance(one, str | int | float):
            kind = "a table" if isinstance(one, dict) else f"{one!r}"
            raise UsageError(f"step {step}: {name} cannot be {kind}",
                             remedy="give a text, a number, true, or a list of them")  # fmt: skip


def option_words(options: Mapping[str, object], shape: CommandShape) -> tuple[str, ...]:
    """Write the command and its options as typed after ``tfdyno``; without ``--json``.

    Args:
        options: Checked by ``check_options``, with references filled.
        shape: Of the command.
    """
    words = list(shape.words)
    given = {
        parameter: value
        for name, value in options.items()
        if (parameter := shape.parameter(name)) and (value is not False or parameter.is_flag)
    }
    for parameter, value in given.items():
        if parameter.flag:
            words += _words(parameter, value)
    rest: list[str] = []
    for parameter in shape.parameters:
        if parameter.flag or parameter not in given:
            continue
        value = given[parameter]
        if parameter.is_multiple:
            rest += ["--", *_texts(value)]
        else:
            words += _guarded(",".join(_texts(value)))
    return (*words, *rest)


def script_words(options: Mapping[str, object]) -> tuple[str, ...]:
    """Write the words behind a script: ``arguments`` as they are, other keys as ``--key value``."""
    words: list[str] = []
    for name, value in options.items():
        if name == ARGUMENTS:
            continue
        flag = Parameter(
            names=(name,), flag=f"--{name}", is_flag=isinstance(value, bool), is_multiple=True
        )
        words += _words(flag, value)
    return (*_texts(options.get(ARGUMENTS, [])), *words)


def _words(parameter: Parameter, value: object) -> list[str]:
    if parameter.is_flag:
        word = parameter.flag if value else parameter.off
        return [word] if word else []
    texts = _texts(value)
    if not parameter.is_multiple:
        texts = [",".join(texts)]
    pairs = [[f"{parameter.flag}={one}"] if one.startswith("-") else [parameter.flag, one]
             for one in texts]  # fmt: skip
    return [word for pair in pairs for word in pair]


def _guarded(text: str) -> list[str]:
    """Return a positional that looks like an option would be taken for one."""
    return [f"./{text}" if text.startswith("-") else text]


def _texts(value: object) -> list[str]:
    items = value if isinstance(value, list | tuple) else [value]
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in items]
