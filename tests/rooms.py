"""The rooms of the source tree, and by which of their modules others enter them."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import grimp

from tfdyno.cli.main import COMMANDS

SRC = Path(__file__).parents[1] / "src"
_NAMED = re.compile(r'"tfdyno((?:\.\w+){2,})"')
"""A module that is started, or imported when it is needed, by its name."""


@functools.cache
def _folders() -> frozenset[str]:
    files = SRC.joinpath("tfdyno").rglob("__init__.py")
    return frozenset(".".join(file.parent.relative_to(SRC).parts) for file in files)


def room_of(module: str) -> str:
    """The room that a module stands in: its package, or the room of the package it stands in."""
    parts = module.split(".")
    depth = 3 if ".".join(parts[:3]) in _folders() else 2
    return ".".join(parts[:depth])


@functools.cache
def doors() -> dict[str, frozenset[str] | None]:
    """By room, its modules that other rooms use; None where they use all of them.

    The modules of a package that stand beside its rooms are for these as well: what they use of
    them is no door.
    """
    graph, folders = grimp.build_graph("tfdyno", cache_dir=None), _folders()
    modules = {one for one in graph.modules - folders if one.count(".") > 1}
    used = {
        (one, other)
        for one in graph.modules - folders
        for other in graph.find_modules_directly_imported_by(one) & modules
    }
    for one in modules:
        text = SRC.joinpath(*one.split(".")).with_suffix(".py").read_text()
        used |= {(one, f"tfdyno{name}") for name in _NAMED.findall(text)}
    used |= {("tfdyno.cli.main", command.module) for command in COMMANDS.values()}
    inside: dict[str, set[str]] = {}
    for module in modules:
        inside.setdefault(room_of(module), set()).add(module)
    found: dict[str, frozenset[str] | None] = {}
    for room, all_of_it in inside.items():
        entered = {
            other
            for one, other in used
            if other in all_of_it and not f"{room_of(one)}.".startswith(f"{room}.")
        }
        names = frozenset(one.removeprefix(f"{room}.") for one in entered)
        found[room.removeprefix("tfdyno.")] = None if len(entered) == len(all_of_it) else names
    return found
