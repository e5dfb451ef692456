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
from tfdyno.core.messages.child import Child

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


@pytest.mark.parametrize("name", CHILDREN)
def test_every_field_of_a_message_has_a_type_that_is_there_at_run_time(name: str) -> None:
    found: set[type] = set()
    for kind in (CHILDREN[name].request, CHILDREN[name].result):
        nouns_of(kind, found)
    assert all(one.__module__.startswith("tfdyno.core") for one in found)


def test_messages_need_the_standard_library_alone() -> None:
    code = f"import importlib\nfor one in {MODULES!r}: importlib.import_module(one)"
    command = [sys.executable, "-S", "-c", code]
    subprocess.run(command, env={"PYTHONPATH": str(SRC)}, check=True, timeout=60)
