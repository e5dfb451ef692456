"""Kept programs: what a compiler sees of them, what is taken over, what goes."""

from __future__ import annotations

import multiprocessing
import os
import time
from typing import TYPE_CHECKING

import pytest
from tests.jobs.disks import mounted

from tfdyno.store.compiled.programs import ProgramStore, View, digest_of

if TYPE_CHECKING:
    from pathlib import Path

PLACES = {"programs": "programs", "autotune": "programs/tuned"}


def view(store: ProgramStore, key: str = "ab") -> View:
    return store.view(key, {"version": "2.21.0"}, PLACES)


def fill(store: ProgramStore, *names: str, key: str = "ab", kind: str = "programs") -> None:
    one = view(store, key)
    for name in names:
        (one.place(kind) / name).write_text(f"code of {name}")
    one.collect()
    one.close()


def names_in(store: ProgramStore, kind: str = "programs") -> list[str]:
    return [one.name for one in store.entries() if one.kind == kind]


def test_what_one_process_adds_the_next_one_finds_under_the_same_name(tmp_path: Path) -> None:
    store = ProgramStore(root=tmp_path / "compiled")
    fill(store, "step.pb")
    fill(store, "gemm.textproto", kind="autotune")
    later = view(store)
    assert (later.place("programs") / "step.pb").read_text() == "code of step.pb"
    assert (later.place("autotune") / "gemm.textproto").read_text() == "code of gemm.textproto"
    later.collect()
    assert later.made == {"programs": set(), "autotune": set()}
    later.close()


def test_another_key_sees_nothing_of_it(tmp_path: Path) -> None:
    store = ProgramStore(root=tmp_path / "compiled")
    fill(store, "step.pb")
    assert not list(view(store, "cd").place("programs").glob("*.pb"))


@pytest.mark.parametrize("content", [b"", b"code", b"code of stap.pb"])
def test_a_damaged_program_is_dropped_before_a_compiler_sees_it(
    tmp_path: Path, content: bytes
) -> None:
    store = ProgramStore(root=tmp_path / "compiled")
    fill(store, "step.pb", "other.pb")
    next(one.path for one in store.entries() if one.name == "step.pb").write_bytes(content)
    later = view(store)
    assert later.dropped == 1
    assert list(later.linked["programs"]) == ["other.pb"]
    assert names_in(store) == ["other.pb"]


def test_a_program_that_others_could_write_is_dropped(tmp_path: Path) -> None:
    store = ProgramStore(root=tmp_path / "compiled")
    fill(store, "step.pb")
    next(store.entries()).path.chmod(0o666)
    assert view(store).linked["programs"] == {}


def test_whatever_the_umask_a_kept_program_is_the_owners_alone(tmp_path: Path) -> None:
    store = ProgramStore(root=tmp_path / "compiled")
    before = os.umask(0)
    try:
        fill(store, "step.pb")
    finally:
        os.umask(before)
    assert next(store.entries()).path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "compiled").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "compiled" / "ab").stat().st_mode & 0o777 == 0o700


def test_what_is_half_written_is_not_kept(tmp_path: Path) -> None:
    store = ProgramStore(root=tmp_path / "compiled")
    fill(store, "step.pb123.tmp", "step-atime")
    assert names_in(store) == []


def test_a_half_written_file_tells_that_its_process_failed_to_write(tmp_path: Path) -> None:
    one = view(ProgramStore(root=tmp_path / "compiled"))
    assert not one.failed_writes
    (one.place("programs") / "step.pb123.tmp").touch()
    assert one.failed_writes


def test_clearing_does_not_take_a_program_from_a_process_that_runs(tmp_path: Path) -> None:
    store = ProgramStore(root=tmp_path / "compiled")
    fill(store, "step.pb")
    running = view(store)
    for one in store.entries():
        one.path.unlink()
    store.remove_empty()
    assert (running.place("programs") / "step.pb").read_text() == "code of step.pb"
    running.close()


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    store = ProgramStore(root=tmp_path / "compiled", limit_bytes=2 * len("code of a.pb"))
    fill(store, "a.pb", "b.pb", "c.pb")
    for one in store.entries():
        os.utime(one.path, (1_000.0, 1_000.0))
    user = view(store)
    user.touch("programs", frozenset({"a.pb"}))
    user.close()
    store.trim()
    found = names_in(store)
    assert len(found) == 2
    assert "a.pb" in found


def test_looking_whether_a_program_is_whole_is_not_using_it(tmp_path: Path) -> None:
    store = ProgramStore(root=tmp_path / "compiled")
    fill(store, "a.pb")
    os.utime(next(store.entries()).path, (1_000.0, 1_000.0))
    view(store).close()
    assert next(store.entries()).used_at_s == 1_000.0


def test_the_folder_of_a_process_that_is_gone_goes_and_that_of_one_that_runs_stays(
    tmp_path: Path,
) -> None:
    store = ProgramStore(root=tmp_path / "compiled")
    running, gone = view(store), view(store)
    gone.lock.close()
    for one in (running, gone):
        old_s = time.time() - 3600.0
        os.utime(one.folder, (old_s, old_s))
    store.trim()
    assert running.folder.exists()
    assert not gone.folder.exists()


def test_the_folder_of_a_key_goes_with_its_last_program(tmp_path: Path) -> None:
    store = ProgramStore(root=tmp_path / "compiled")
    fill(store, "a.pb")
    store.note_time("ab", "step", b"{}")
    store.remove_empty()
    assert store.time_of("ab", "step") == b"{}"
    next(store.entries()).path.unlink()
    store.remove_empty()
    assert not (tmp_path / "compiled" / "ab").exists()


def _filled(root: Path, number: int) -> None:
    store = ProgramStore(root=root)
    one = view(store)
    for name in range(40):
        file = one.place("programs") / f"{name}.pb"
        if not file.exists():  # what is kept is taken, not compiled
            file.write_text(f"{number} {name} " * 500)
    one.collect()
    one.close()
    store.trim()


def test_two_processes_fill_it_at_once_and_every_program_is_there_whole(tmp_path: Path) -> None:
    start = multiprocessing.get_context("spawn")
    root = tmp_path / "compiled"
    both = [start.Process(target=_filled, args=(root, number)) for number in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(60)
    assert [one.exitcode for one in both] == [0, 0]
    store = ProgramStore(root=root)
    assert all(digest_of(one.path) == one.digest for one in store.entries())
    later = view(store)
    assert later.dropped == 0
    assert len(later.linked["programs"]) == 40


def test_a_compiler_that_writes_over_a_kept_program_damages_it_and_it_goes(tmp_path: Path) -> None:
    store = ProgramStore(root=tmp_path / "compiled")
    fill(store, "a.pb")
    one = view(store)
    (one.place("programs") / "a.pb").write_text("another")
    one.close()
    assert view(store).dropped == 1


def test_a_full_disk_loses_the_program_and_nothing_else(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "64k") as small:
        store = ProgramStore(root=small / "compiled")
        one = view(store)
        (one.place("programs") / "a.pb").write_text("small")
        one.collect()
        (tmp_path / "elsewhere.pb").write_bytes(b"x" * (1 << 20))
        with pytest.raises(OSError, match="No space"):
            store.keep("ab", "programs", tmp_path / "elsewhere.pb")
        one.close()
        assert view(store).linked["programs"].keys() == {"a.pb"}


def test_an_unreadable_note_of_what_a_key_stands_for_is_none(tmp_path: Path) -> None:
    store = ProgramStore(root=tmp_path / "compiled")
    fill(store, "a.pb")
    assert store.about("ab") == {"version": "2.21.0"}
    (tmp_path / "compiled" / "ab" / "about.json").write_bytes(b"{")
    assert store.about("ab") == {}
