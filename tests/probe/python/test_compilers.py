"""Which XLA an interpreter has: this one, really, and made-up folders."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import pytest

from tfdyno.probe.base.host import this_host
from tfdyno.probe.python.compilers import compiler, known_flags, machine

if TYPE_CHECKING:
    from pathlib import Path


def installed(*names: str) -> str:
    for name in names:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    pytest.skip(f"{names[0]} is not installed")


def test_the_installed_tensorflow_is_found_without_importing_it() -> None:
    expected = installed("tensorflow", "tensorflow-cpu")
    before = set(sys.modules)
    found = compiler(this_host(), "tensorflow")
    assert found
    assert found.version == expected
    assert found.size_bytes == found.library.stat().st_size
    assert not {"tensorflow", "jaxlib"}.intersection(set(sys.modules) - before)


def test_the_installed_jax_is_found() -> None:
    expected = installed("jax")
    found = compiler(this_host(), "jax")
    assert found
    assert found.version == expected
    assert found.versions["jaxlib"] == version("jaxlib")


def test_the_library_knows_the_flags_that_are_used_and_none_that_is_made_up() -> None:
    installed("tensorflow", "tensorflow-cpu")
    found = compiler(this_host(), "tensorflow")
    assert found
    names = ("tf_xla_persistent_cache_directory", "tf_xla_persistent_cache_directorx")
    assert known_flags(found.library, names) == {names[0]}


def test_a_flag_has_to_stand_there_to_its_end(tmp_path: Path) -> None:
    library = tmp_path / "xla.so"
    library.write_bytes(b"\x7fELF\0xla_one\0xla_two_more\0")
    assert known_flags(library, ("xla_one", "xla_two", "xla_three")) == {"xla_one"}


def test_a_library_that_is_gone_or_empty_knows_no_flag(tmp_path: Path) -> None:
    (tmp_path / "empty.so").touch()
    assert known_flags(tmp_path / "none.so", ("a",)) == frozenset()
    assert known_flags(tmp_path / "empty.so", ("a",)) == frozenset()


def test_an_interpreter_without_it_has_none(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    assert compiler(this_host(str(tmp_path / "bin" / "python")), "tensorflow") is None


def test_a_machine_is_told_by_its_processor_and_what_that_can_do() -> None:
    found = machine(this_host(), "-1")
    assert found["processor"]
    assert int(found["processors"]) >= 1
    assert len(found["features"]) == 8
    assert "cards" not in found
