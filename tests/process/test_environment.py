"""A trace knows the versions and the files of the user's that it depends on."""

from __future__ import annotations

import hashlib
import importlib
import json
import platform
import site
from importlib import metadata
from pathlib import Path

import pytest

from tfdyno.process import environment


def test_versions_are_those_that_are_installed() -> None:
    found = environment.versions()
    assert found["python"] == platform.python_version()
    assert found["jax"] == metadata.version("jax")
    assert set(found) <= {"python", *environment.PACKAGES}
    assert "tensorflow-cpu" not in found  # told as tensorflow


def test_the_script_and_what_it_imports_are_told_with_their_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, module = tmp_path / "train.py", tmp_path / "own_layers_of_a_test.py"
    script.write_text("import own_layers_of_a_test\n")
    module.write_text("WIDTH = 8\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("own_layers_of_a_test")
    found = environment.files_used(f"{script}:build")
    for path in (script, module):
        assert found[str(path.resolve())] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_installed_packages_are_told_by_their_record_alone() -> None:
    found = [Path(name) for name in environment.files_used("keras:ResNet50")]
    assert any(path.name == "METADATA" and "jax" in path.parent.name for path in found)
    assert Path(json.__file__).resolve() not in found  # the standard library
    assert Path(pytest.__file__).resolve() not in found  # an installed package
    assert Path(environment.__file__).resolve() not in found  # tfdyno itself


def test_what_autograph_writes_is_no_module_of_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "__autograph_generated_filea1b2.py").write_text("WIDTH = 8\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("__autograph_generated_filea1b2")
    assert not [name for name in environment.files_used("keras:ResNet50") if "autograph" in name]


def test_a_package_that_is_linked_among_the_installed_is_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, installed = tmp_path / "project" / "linked_of_a_test", tmp_path / "site-packages"
    own.mkdir(parents=True)
    installed.mkdir()
    (own / "__init__.py").write_text("WIDTH = 8\n")
    (installed / own.name).symlink_to(own)
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(installed)])
    monkeypatch.syspath_prepend(installed)
    importlib.import_module(own.name)
    assert str(own / "__init__.py") in environment.files_used("keras:ResNet50")
