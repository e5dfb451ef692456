"""Limits of a process, from recorded files of the kernel and on this machine."""

from __future__ import annotations

import os
import resource
from typing import TYPE_CHECKING

from tfdyno.probe.base.host import Host
from tfdyno.probe.machine.limits import memory_limit_bytes, shared_memory_bytes, soft_limit

if TYPE_CHECKING:
    from pathlib import Path


def put(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_strictest_group_above_counts(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "0::/pod/box\n")
    put(tmp_path, "sys/fs/cgroup/pod/memory.max", "2000000000\n")
    put(tmp_path, "sys/fs/cgroup/pod/box/memory.max", "max\n")
    assert memory_limit_bytes(Host(root=tmp_path)) == 2_000_000_000


def test_version_1_writes_no_limit_as_a_huge_number(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "5:memory:/box\n3:cpu:/box\n")
    put(tmp_path, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    assert memory_limit_bytes(Host(root=tmp_path)) == -1
    put(tmp_path, "sys/fs/cgroup/memory/box/memory.limit_in_bytes", "512000000\n")
    assert memory_limit_bytes(Host(root=tmp_path)) == 512_000_000


def test_limits_of_this_process_are_those_of_the_system() -> None:
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert soft_limit("RLIMIT_NOFILE") == (-1 if soft == resource.RLIM_INFINITY else soft)
    assert soft_limit("RLIMIT_THAT_IS_NONE") == -1


def test_a_folder_tells_its_size_and_none_tells_nothing(tmp_path: Path) -> None:
    size, free = shared_memory_bytes(str(tmp_path))
    there = os.statvfs(tmp_path)
    assert size == there.f_blocks * there.f_frsize
    assert 0 <= free <= size
    assert shared_memory_bytes(str(tmp_path / "none")) == (-1, -1)
