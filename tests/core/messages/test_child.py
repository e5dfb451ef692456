"""core/messages: both ends of every child mean the same, in any interpreter."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
import subprocess
import sys
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tfdyno.core.messages
from tfdyno.core.messages.calibrate import LINES, Line
from tfdyno.core.messages.child import Child
from tfdyno.core.messages.nvidia import KINDS, Told
from tfdyno.core.messages.serve import EVENTS, Said

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

SRC = Path(tfdyno.core.messages.__file__).parents[3]
MODULES = [
    f"tfdyno.core.messages.{one.name}"
    for one in pkgutil.iter_modules(tfdyno.core.messages.__path__)
]
CHILDREN: dict[str, Child[Any, Any]] = {
    name: value
    for module in MODULES
    for name, value in vars(importlib.import_module(module)).items()
    if isinstance(value, Child)
}


@pytest.mark.parametrize("name", CHILDREN)
def test_a_child_serves_what_its_parent_starts_it_by(name: str) -> None:
    source = (SRC / f"{CHILDREN[name].module.replace('.', '/')}.py").read_text()
    assert re.search(rf"serve\(\w+, {name}\)\)", source)


def nouns_of(kind: Value, found: set[type]) -> None:
    """Add all dataclasses of a type; raises where a field was imported for checkers alone."""
    for part in typing.get_args(kind):
        nouns_of(part, found)
    if dataclasses.is_dataclass(kind) and kind not in found:
        found.add(typing.cast("type", kind))
        for part in typing.get_type_hints(kind).values():
            nouns_of(part, found)


@pytest.mark.parametrize("module", MODULES)
def test_every_field_of_a_message_has_a_type_that_is_there_at_run_time(module: str) -> None:
    """Of all that children and what starts them write to each other, whatever reads it."""
    found: set[type] = set()
    for value in vars(importlib.import_module(module)).values():
        if isinstance(value, Child):
            nouns_of(value.request, found)
            nouns_of(value.result, found)
        else:
            nouns_of(value, found)
    assert all(one.__module__.startswith("tfdyno.core") for one in found)


def test_lines_without_a_name_of_their_own_are_told_apart_by_a_field() -> None:
    for field, kind in LINES.items():
        others = [one for one in LINES.values() if one is not kind]
        assert field in {one.name for one in dataclasses.fields(kind)}
        assert not [one for one in others if field in {x.name for x in dataclasses.fields(one)}]
    assert set(LINES.values()) == set(typing.get_args(Line))


def test_every_event_of_a_server_is_read_as_what_wrote_it() -> None:
    assert {kind: kind.__dataclass_fields__["event"].default for kind in EVENTS.values()} == {
        kind: event for event, kind in EVENTS.items()
    }
    assert set(EVENTS.values()) == set(typing.get_args(Said))


def test_every_answer_of_a_script_of_nvidia_s_libraries_has_a_kind() -> None:
    assert set(KINDS.values()) == set(typing.get_args(Told))


def test_messages_need_the_standard_library_alone() -> None:
    code = f"import importlib\nfor one in {MODULES!r}: importlib.import_module(one)"
    command = [sys.executable, "-S", "-c", code]
    subprocess.run(command, env={"PYTHONPATH": str(SRC)}, check=True, timeout=60)
