"""Limits of containers, read from recorded folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.process.control_groups import Throttling, room_bytes, throttling

if TYPE_CHECKING:
    from pathlib import Path


def _written(root: Path, **files: str) -> None:
    for name, text in files.items():
        file = root / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_counters_of_version_1_are_read_where_only_the_top_folder_exists(tmp_path: Path) -> None:
    folder = tmp_path / "sys/fs/cgroup/cpu,cpuacct"
    folder.mkdir(parents=True)
    (folder / "cpu.stat").write_text("nr_periods 40\nnr_throttled 30\nthrottled_time 2500000000\n")
    _written(tmp_path, proc__self__cgroup="4:cpu,cpuacct:/docker/x\n3:memory:/docker/x\n")
    assert throttling(tmp_path) == Throttling(periods=40, held_periods=30, held_s=2.5)


def test_throttled_time_of_version_2_is_in_microseconds(tmp_path: Path) -> None:
    text = "usage_usec 9\nnr_periods 10\nnr_throttled 4\nthrottled_usec 700000\n"
    _written(tmp_path, proc__self__cgroup="0::/\n")
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cpu.stat").write_text(text)
    assert throttling(tmp_path) == Throttling(periods=10, held_periods=4, held_s=0.7)


def test_no_group_and_no_limit_are_no_error(tmp_path: Path) -> None:
    assert throttling(tmp_path) == Throttling()
    assert list(room_bytes(tmp_path)) == []


def test_room_of_version_1_is_the_limit_less_what_is_used(tmp_path: Path) -> None:
    folder = tmp_path / "sys/fs/cgroup/memory"
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text("1000\n")
    (folder / "memory.usage_in_bytes").write_text("400\n")
    _written(tmp_path, proc__self__cgroup="3:memory:/docker/x\n")
    assert list(room_bytes(tmp_path)) == [600]
