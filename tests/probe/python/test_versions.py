"""Versions that an interpreter has, of this one and of another one."""

from __future__ import annotations

import sys
from importlib.metadata import version as of
from typing import TYPE_CHECKING

from tfdyno.probe.python.versions import brings, version, versions

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_installed_is_told_in_the_order_that_was_asked() -> None:
    found = versions("pytest", "no-such-package", "click")
    assert list(found.items()) == [("pytest", of("pytest")), ("click", of("click"))]
    assert version("no-such-package", "click", "pytest") == of("click")
    assert version("no-such-package") == ""


def test_another_interpreter_tells_of_its_own(tmp_path: Path) -> None:
    for name, flags in (("same", ""), ("bare", "-I -S")):
        (tmp_path / name).write_text(f'#!/bin/sh\nexec {sys.executable} {flags} "$@"\n')
        (tmp_path / name).chmod(0o755)
    assert version("none", "pytest", python=str(tmp_path / "same")) == of("pytest")
    assert versions("pytest", python=str(tmp_path / "bare")) == {}
    assert versions("pytest", python=str(tmp_path / "none")) == {}
    assert brings(str(tmp_path / "same"), "pytest")
    assert not brings(str(tmp_path / "bare"), "pytest")


def test_what_this_interpreter_finds_is_told_without_asking_another() -> None:
    assert brings(sys.executable, "pytest")
    assert not brings(sys.executable, "no_such_package")
