"""What is kept between processes, shown and cleared."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from tfdyno.jobs.compiled.store import program_store
from tfdyno.jobs.lookup.cache import clear, content
from tfdyno.store.cache import Cache, default_cache

if TYPE_CHECKING:
    from pathlib import Path

DAY_S = 86_400.0
PLACES = {"programs": "programs", "autotune": "autotune"}


def program(name: str, size: int, *, key: str = "ab", version: str = "2.21.0") -> None:
    about = {"framework": "tensorflow", "version": version, "processor": "AMD EPYC"}
    view = program_store({}).view(key, about, PLACES)
    (view.place("programs") / name).write_bytes(b"x" * size)
    view.collect()
    view.close()


def entry(kind: str, key: str, size: int, cache: Cache | None = None) -> Path:
    def make(folder: Path) -> None:
        (folder / "value").write_bytes(b"x" * size)

    return (cache or default_cache()).entry(kind, key, make)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFDYNO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_empty_cache_holds_nothing(cache: Path) -> None:
    found = content()
    assert (found.folder, found.groups, found.size_bytes) == (str(cache), (), 0)


def test_each_kind_is_counted_and_programs_by_their_software() -> None:
    program("a.pb", 100)
    program("b.pb", 50, key="cd")  # another key of the same words: other flags
    program("c.pb", 10, key="ef", version="2.22.0")
    entry("trace", "11", 7)
    entry("program", "22", 5)
    entry("sharded", "33", 3)
    found = [(one.kind, one.made_for.get("version"), one.count) for one in content().groups]
    assert found == [
        ("traces", None, 1), ("estimates", None, 2), ("programs", "2.21.0", 2),
        ("programs", "2.22.0", 1),
    ]  # fmt: skip
    assert content().groups[2].size_bytes == 150


def test_clearing_takes_all_or_one_kind(cache: Path) -> None:
    program("a.pb", 100)
    trace = entry("trace", "11", 7)
    assert [one.kind for one in clear(["programs"]).groups] == ["programs"]
    assert trace.exists()
    assert not list(cache.glob("compiled/*/programs"))
    assert [one.kind for one in clear().groups] == ["traces"]
    assert content().groups == ()
    assert clear().groups == ()


def test_only_what_was_not_used_for_so_long_goes() -> None:
    program("old.pb", 100)
    program("new.pb", 100)
    for one in program_store({}).entries():
        if one.name == "old.pb":
            long_ago_s = time.time() - 40 * DAY_S
            os.utime(one.path, (long_ago_s, long_ago_s))
    assert [one.count for one in clear(unused_for_s=30 * DAY_S).groups] == [1]
    assert [one.name for one in program_store({}).entries()] == ["new.pb"]


def test_a_dry_run_deletes_nothing() -> None:
    program("a.pb", 100)
    assert clear(dry=True).groups == content().groups
    assert content().size_bytes == 100


def test_the_limit_of_traces_counts_no_programs_and_takes_none() -> None:
    program("a.pb", 10_000)
    small = Cache(root=default_cache().root, limit_bytes=1)
    entry("trace", "11", 5, small)
    entry("trace", "22", 5, small)
    assert [one.name for one in program_store({}).entries()] == ["a.pb"]


def test_a_folder_that_is_not_to_be_trusted_is_said(cache: Path) -> None:
    program("a.pb", 1)
    cache.chmod(0o777)
    assert "others can write to" in content().unused
    assert clear().groups[0].count == 1  # clearing needs no trust
