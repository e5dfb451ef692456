"""A project's file to begin with: the usual steps for one workload, or steps from commands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.core.base.toml_text import quoted
from tfdyno.core.project.step_command import ARGUMENTS
from tfdyno.render.base.template import environment

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBER = re.compile(r"(0|[1-9][0-9]*)(\.(0|[0-9]*[1-9]))?")
"""Numbers that TOML gives back as they are typed; not 3.10, which it makes 3.1."""


def project_start(*, name: str, workload: str, trains: bool) -> str:
    """Return the text of a ``project.toml``.

    Args:
        name: Of the project, and of the model in the store.
        workload: As every command takes it, relative to the file.
        trains: Whether the workload is trained; a model that is trained already is not.
    """
    found = environment()
    found.filters["toml"] = quoted
    page = found.get_template("project.toml.j2")
    return page.render(name=name, workload=workload, trains=trains) + "\n"


def project_steps(commands: Sequence[Sequence[str]]) -> str:
    """Return a ``project.toml`` whose steps are commands on a workload as they are typed.

    Args:
        commands: Words behind ``tfdyno``: command, workload, options with their values, flags as
            ``--spot`` and ``--no-spot``, and behind ``--`` the arguments of the script. Each
            command names its step.
    """
    return "\n".join(_step_table(words) for words in commands)


def _step_table(words: Sequence[str]) -> str:
    command, workload, *rest = words
    found: dict[str, list[str]] = {"command": [command], "workload": [workload]}
    while rest and rest[0] != "--":
        name = rest.pop(0).removeprefix("--")
        has_value = bool(rest) and not rest[0].startswith("--")
        found.setdefault(name, []).extend([rest.pop(0)] if has_value else [])
    lines = [_line(name, values) for name, values in found.items()]
    if rest:
        lines.append(f"{ARGUMENTS} = [{', '.join(map(_text, rest[1:]))}]")
    return "\n".join([f"[steps.{command}]", *lines, ""])


def _line(name: str, values: Sequence[str]) -> str:
    """Write one option: a flag has no value, one given many times has a list."""
    if not values:
        return f"{name.removeprefix('no-')} = {'false' if name.startswith('no-') else 'true'}"
    plain = [one if _NUMBER.fullmatch(one) else _text(one) for one in values]
    return f"{name} = {plain[0] if len(plain) == 1 else '[' + ', '.join(plain) + ']'}"


def _text(word: str) -> str:
    """Quote a word, in which a single brace would name another step."""
    return quoted(word.replace("{", "{{").replace("}", "}}"))
