"""Where a step's command writes: into the step's own folder, unless its options say otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.export import ENDINGS
from tfdyno.core.project.step_reference import OWN, has_reference, texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.project.step_command import CommandShape

_OWN = f"{{{OWN}}}"
_ELSEWHERE = frozenset({"store"})
"""Written by many steps and projects: the model store."""
_WATCHED = ("local", "ray")
"""Where a launch ends with its training; elsewhere its job writes when the step is over."""
PAGE = "report.html"
RUN, RESULTS = "run", "results"
_PLACES = {
    "train": ("output", RUN),
    "launch": ("output", RUN),
    "tune": ("output", "tune"),
    "bench": ("output", RESULTS),
    "diagnose": ("output", RESULTS),
    "data convert": ("destination", "dataset"),
    "data bench": ("output", "feed.json"),
    "recipe auto": ("output", "recipe.toml"),
    "recipe show": ("output", "recipe.toml"),
    "memory": ("output", "recipe.toml"),
    "models get": ("output", "model"),
    "export": ("output", "export"),
}
"""The option of each command that names what is written, and the name in the step's folder."""
_ONLY_WITH = {"diagnose": "fix", "memory": "plan"}
"""Where a command writes nothing unless it has this flag."""
_RESUMED = {"train": "", "tune": "", "bench": "", "diagnose": "fix"}
"""Commands that go on with ``--resume`` where their place holds something; the flag they need."""
GOES_ON = frozenset({"data convert", "launch"})
"""Commands that go on by themselves."""
MAY_GO_ON = frozenset({*_RESUMED, *GOES_ON})
"""Commands of which it is worth to keep what was begun."""


def check_places(step: str, options: Mapping[str, object], shape: CommandShape) -> None:
    """Refuse options that write outside the step's folder.

    What lies elsewhere could be deleted or written over, and would still be taken for the output.

    Args:
        step: Its name.
        options: Of the step, or of its load test; known to the command.
        shape: Of the command.

    Raises:
        UsageError: The sentence names the step and the option.
    """
    if _is_queued(shape, options):
        return
    for name, value in options.items():
        parameter = shape.parameter(name)
        items = value if isinstance(value, list) else [value]
        if not parameter or not parameter.writes or name in _ELSEWHERE or value is False:
            continue
        if all(_is_inside(str(one)) for one in items):
            continue
        place = dict([_place(shape, options), ("html", PAGE)]).get(parameter.names[0], "")
        remedy = f"leave it out; others name it as {{{step}}}/{place}"
        raise UsageError(
            f"step {step}: {name} = {value!r} is outside of the step's folder",
            why="what a step makes is found again there",
            remedy=remedy if place else f"begin it with {_OWN}/",
        )


def with_outputs(
    options: Mapping[str, object], shape: CommandShape, folder: str
) -> dict[str, object]:
    """Return the options, and those that name what is written and were not given.

    Args:
        options: Of the step.
        shape: Of its command.
        folder: Of the step's output.
    """
    found = dict(options)
    given = {shape.parameter(name) for name in options}
    if _has_place(shape, options):
        option, place = _place(shape, options)
        parameter = shape.parameter(option)
        if parameter and parameter not in given:
            found[option] = f"{folder}/{place}"
    page = shape.parameter("html")
    if page and page not in given:
        found["html"] = f"{folder}/{PAGE}"
    return found


def place_of(shape: CommandShape, options: Mapping[str, object]) -> str:
    """Return the name in the step's folder of what the command goes on with; empty: it does not.

    Args:
        shape: Of the command.
        options: Of the step, as its file has them.
    """
    if shape.name not in _RESUMED or not _has_flag(options, _RESUMED[shape.name]):
        return ""
    option, place = _PLACES[shape.name]
    given = {shape.parameter(name): value for name, value in options.items()}
    parameter = shape.parameter(option)
    if parameter in given:
        return _own_name(given[parameter])
    return place if parameter else ""


def _place(shape: CommandShape, options: Mapping[str, object]) -> tuple[str, str]:
    """Return option and name of what the command writes; both empty: it writes nothing."""
    option, place = _PLACES.get(shape.name, ("", ""))
    return option, place + (_ending(options) if shape.name == "export" else "")


def _is_inside(text: str) -> bool:
    return text.startswith(f"{_OWN}/") and ".." not in text.split("/")


def _own_name(value: object) -> str:
    """Return the name behind ``{output}/``; empty: another place, or not known before it runs."""
    if not isinstance(value, str) or not _is_inside(value):
        return ""
    name = value.removeprefix(f"{_OWN}/").strip("/")
    return "" if has_reference(name) else name


def _has_place(shape: CommandShape, options: Mapping[str, object]) -> bool:
    has_one = shape.name in _PLACES and _has_flag(options, _ONLY_WITH.get(shape.name, ""))
    return has_one and not _is_queued(shape, options)


def _is_queued(shape: CommandShape, options: Mapping[str, object]) -> bool:
    """Return whether the command hands a training to an engine and ends before it."""
    if shape.name != "launch":
        return False
    is_kuberay = any("kuberay" in text for text in texts(options.get("with", ())))
    return str(options.get("on", _WATCHED[0])).lower() not in _WATCHED or is_kuberay


def _has_flag(options: Mapping[str, object], name: str) -> bool:
    return not name or options.get(name) is True


def _ending(options: Mapping[str, object]) -> str:
    """Return the ending of the one file that an export writes; empty: a folder."""
    value = options.get("to", "")
    formats = [one.strip() for text in (value if isinstance(value, list) else [value])
               for one in str(text).split(",")]  # fmt: skip
    endings = [ending for name, ending in ENDINGS.items() if formats == [name]]
    return endings[0] if endings else ""
