"""Where compiled programs are kept, and whether."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.compiled.store import program_store, why_unused

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFDYNO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_folder_is_in_the_users_cache_and_bounded(cache: Path) -> None:
    store = program_store({})
    assert store.root == cache / "compiled"
    assert store.limit_bytes == 4 * 1024**3


def test_a_size_bounds_it_otherwise() -> None:
    assert program_store({"TFDYNO_COMPILE_CACHE": "10GiB"}).limit_bytes == 10 * 1024**3


def test_what_is_no_size_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="'much' is not an amount of memory"):
        program_store({"TFDYNO_COMPILE_CACHE": "much"})


@pytest.mark.parametrize("word", ["off", "OFF", "0", " no "])
def test_it_can_be_turned_off(word: str) -> None:
    variables = {"TFDYNO_COMPILE_CACHE": word}
    store = program_store(variables)
    assert why_unused(store, variables) == f"TFDYNO_COMPILE_CACHE is {word.strip()}"
    assert why_unused(store, {}) == ""


def test_a_folder_that_others_can_write_is_not_used(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    assert f"others can write to {cache} (mode 777)" in why_unused(program_store({}), {})
