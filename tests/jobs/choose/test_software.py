"""The release that an answer is for: asked, installed where the code runs, or the newest."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog.software import NEWEST
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import Workload
from tfdyno.jobs.choose.trace import software_for

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = Workload(reference="keras:ResNet50", kind="application")


def asking(software: str) -> Workload:
    return Workload(reference="keras:ResNet50", kind="application", software=software)


def test_what_is_asked_for_counts_whatever_is_installed() -> None:
    found = software_for(asking("tensorflow 2.4"), sys.executable)
    assert (found.name, found.generation, found.chosen) == ("TensorFlow 2.4", "2020", "asked")
    assert software_for(asking("jax"), sys.executable).name == "JAX"


def test_without_a_wish_it_is_what_is_installed_here() -> None:
    found = software_for(PLAIN, sys.executable)
    installed = version("tensorflow-cpu") if _has("tensorflow-cpu") else version("tensorflow")
    assert (found.version, found.chosen) == (installed, "installed")


def test_an_interpreter_without_tensorflow_gets_the_newest(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    found = software_for(PLAIN, str(bare))
    assert (found.version, found.chosen) == (NEWEST, "newest")


def test_a_tensorflow_without_metadata_tells_what_it_was_built_as(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")]
    subprocess.run(command, check=True)
    tools = tmp_path / "own" / "tensorflow" / "tools" / "pip_package"
    tools.mkdir(parents=True)
    (tmp_path / "own" / "tensorflow" / "python").mkdir()
    (tools / "setup.py").write_text("_VERSION = '2.19.1'\n")
    (tmp_path / "own" / "tensorflow" / "__init__.py").write_text("raise AssertionError\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "own"))
    found = software_for(PLAIN, str(tmp_path / "env" / "bin" / "python"))
    assert (found.version, found.chosen) == ("2.19.1", "installed")


def test_what_is_no_release_is_refused() -> None:
    with pytest.raises(UsageError, match="'soon' is no release"):
        software_for(asking("tensorflow soon"), sys.executable)


def _has(name: str) -> bool:
    try:
        version(name)
    except ModuleNotFoundError:
        return False
    return True
