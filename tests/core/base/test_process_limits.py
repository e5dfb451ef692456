"""Control groups of version 1 and 2, from recorded files of the kernel."""

from __future__ import annotations

import os

from tfdyno.core.base.process_limits import Text, allowed, groups, quotas

TOP = "/sys/fs/cgroup"


def recorded(files: dict[str, str]) -> Text:
    return lambda absolute: files.get(absolute, "")


def test_the_strictest_limit_of_the_groups_counts() -> None:
    # By hand: 150 ms of 100 ms are 1.5 CPUs; the group above it has 4.
    text = recorded({
        "/proc/self/cgroup": "0::/a/b\n", f"{TOP}/a/b/cpu.max": "150000 100000\n",
        f"{TOP}/a/cpu.max": "400000 100000\n", f"{TOP}/cpu.max": "max 100000\n",
    })  # fmt: skip
    assert list(groups(text, "cpu")) == [(2, f"{TOP}/a/b"), (2, f"{TOP}/a"), (2, TOP)]
    assert sorted(quotas(text)) == [1.5, 4.0]


def test_a_limit_of_version_1_is_read_where_only_the_top_folder_exists() -> None:
    top = f"{TOP}/cpu,cpuacct"
    text = recorded({
        "/proc/self/cgroup": "4:cpu,cpuacct:/docker/x\n3:memory:/docker/x\n",
        f"{top}/cpu.cfs_quota_us": "50000\n", f"{top}/cpu.cfs_period_us": "100000\n",
    })  # fmt: skip
    assert list(quotas(text)) == [0.5]
    assert {folder for _, folder in groups(text, "memory")} == {
        f"{TOP}/memory/docker/x", f"{TOP}/memory/docker", f"{TOP}/memory",
    }  # fmt: skip


def test_no_group_and_no_limit_are_no_error() -> None:
    assert list(quotas(recorded({}))) == []
    assert list(quotas(recorded({"/proc/self/cgroup": "0::/\n"}))) == []


def test_processors_of_this_process_are_those_of_the_system() -> None:
    assert allowed() == tuple(sorted(os.sched_getaffinity(0)))
