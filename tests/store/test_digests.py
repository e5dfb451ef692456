from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING

import pytest

from tfdyno.store import digests
from tfdyno.store.cache import sha256_of
from tfdyno.store.digests import FILE, LEAST_BYTES, Digests

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are read, by name."""
    names: list[str] = []
    read = sha256_of

    def counted(path: Path) -> str:
        names.append(path.name)
        return read(path)

    monkeypatch.setattr(digests, "sha256_of", counted)
    return names


def large(path: Path, sign: bytes = b"a", *, age_s: float = 60.0) -> Path:
    path.write_bytes(sign * LEAST_BYTES)
    long_ago_s = time.time() - age_s
    os.utime(path, (long_ago_s, long_ago_s))
    return path


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as old at once: the time of a change to an entry cannot be set."""
    monkeypatch.setattr(digests, "SETTLED_S", 0.0)


@pytest.mark.usefixtures("settled")
def test_a_large_file_is_read_once_by_all_runs(tmp_path: Path, reads: list[str]) -> None:
    path = large(tmp_path / "large")
    known = Digests(folder=tmp_path)
    wanted = hashlib.sha256(b"a" * LEAST_BYTES).hexdigest()
    assert known.of(path) == known.of(path) == wanted
    known.save()
    assert Digests(folder=tmp_path).of(path) == wanted
    assert reads == ["large"]


@pytest.mark.usefixtures("settled")
def test_a_change_is_seen_though_size_and_time_are_set_back(
    tmp_path: Path, reads: list[str]
) -> None:
    path = large(tmp_path / "large")
    facts = path.stat()
    known = Digests(folder=tmp_path)
    before = known.of(path)
    time.sleep(0.02)
    large(path, b"b")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert known.of(path) != before
    assert reads == ["large", "large"]


def test_what_has_just_changed_is_not_trusted(tmp_path: Path, reads: list[str]) -> None:
    path = large(tmp_path / "large")  # its entry is new, whatever time the file says
    known = Digests(folder=tmp_path)
    known.of(path)
    known.of(path)
    assert reads == ["large", "large"]


@pytest.mark.usefixtures("settled")
def test_small_files_are_read_once_by_each_run(tmp_path: Path, reads: list[str]) -> None:
    (tmp_path / "small").write_text("1")
    for _ in range(2):
        known = Digests(folder=tmp_path)
        for _ in range(3):
            assert known.of(tmp_path / "small") == hashlib.sha256(b"1").hexdigest()
        known.save()
    assert reads == ["small", "small"]
    assert not (tmp_path / FILE).exists()


@pytest.mark.usefixtures("settled")
def test_what_was_read_is_kept_now_and_then_and_large_files_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    known = Digests(folder=tmp_path, reads=told.append)
    known.of(large(tmp_path / "one"))
    assert not (tmp_path / FILE).exists()
    monkeypatch.setattr(digests, "SAVED_S", 0.0)
    (tmp_path / "small").write_text("1")
    known.of(tmp_path / "small")
    known.of(large(tmp_path / "two"))
    assert "two" in (tmp_path / FILE).read_text()
    assert told == ["one", "two"]


@pytest.mark.usefixtures("settled")
def test_who_only_looks_leaves_nothing(tmp_path: Path) -> None:
    known = Digests(folder=tmp_path, writes=False)
    known.of(large(tmp_path / "one"))
    known.save()
    assert not (tmp_path / FILE).exists()


@pytest.mark.usefixtures("settled")
def test_a_damaged_memory_is_none_and_what_is_gone_is_forgotten(
    tmp_path: Path, reads: list[str]
) -> None:
    (tmp_path / FILE).write_text("{")
    path, other = large(tmp_path / "one"), large(tmp_path / "two")
    known = Digests(folder=tmp_path)
    known.of(path)
    known.of(other)
    other.unlink()
    known.save()
    assert reads == ["one", "two"]
    assert "one" in (tmp_path / FILE).read_text()
    assert "two" not in (tmp_path / FILE).read_text()


@pytest.mark.usefixtures("settled")
def test_a_folder_that_is_not_there_remembers_nothing(tmp_path: Path) -> None:
    known = Digests(folder=tmp_path / "gone")
    known.of(large(tmp_path / "large"))
    known.save()
    assert not (tmp_path / "gone").exists()
