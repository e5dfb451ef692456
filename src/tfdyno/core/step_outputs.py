"""Where a step's command writes: into the step's own folder, unless its options say otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.export import ENDINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.step_command import CommandShape

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
"""By command: the option that names what is written, and the name in the step's folder."""
_ONLY_WITH = {"diagnose": "fix", "memory": "plan"}
"""Where a command writes nothing unless it has this flag."""
_RESUMED = {"train": "", "tune": "", "bench": "", "diagnose": "fix"}
"""Commands that go on with ``--resume`` where their place holds something; the flag they need."""
GOES_ON = frozenset({"data convert", "launch"})
"""Commands that go on by themselves."""


def with_outputs(
    options: Mapping[str, object], shape: CommandShape, folder: str
) -> dict[str, object]:
    """The options, and those that name what is written and were not given.

    Args:
        options: Of the step.
        shape: Of its command.
        folder: Of the step's output.
    """
    found = dict(options)
    given = {shape.parameter(name) for name in options}
    if shape.name in _PLACES and _has_flag(options, _ONLY_WITH.get(shape.name, "")):
        option, place = _PLACES[shape.name]
        parameter = shape.parameter(option)
        if parameter and parameter not in given:
            found[option] = f"{folder}/{place}{_ending(options) if shape.name == 'export' else ''}"
    page = shape.parameter("html")
    if page and page not in given:
        found["html"] = f"{folder}/{PAGE}"
    return found


def place_of(shape: CommandShape, options: Mapping[str, object]) -> str:
    """The name in the step's folder of what the command goes on with; empty: it does not."""
    if shape.name not in _RESUMED or not _has_flag(options, _RESUMED[shape.name]):
        return ""
    option, place = _PLACES[shape.name]
    parameter = shape.parameter(option)
    return place if parameter and parameter not in map(shape.parameter, options) else ""


def _has_flag(options: Mapping[str, object], name: str) -> bool:
    return not name or options.get(name) is True


def _ending(options: Mapping[str, object]) -> str:
    """Of the one file that an export writes; empty: a folder."""
    value = options.get("to", "")
    formats = [one.strip() for text in (value if isinstance(value, list) else [value])
               for one in str(text).split(",")]  # fmt: skip
    endings = [ending for name, ending in ENDINGS.items() if formats == [name]]
    return endings[0] if endings else ""
