"""The folder of a run: its file system, when a file is seen, how fast it is."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from tfdyno.probe.base.host import this_host
from tfdyno.probe.files.shared_folder import (
    folder_facts,
    mount_of,
    read_bytes_per_s,
    seen_after_s,
    write_bytes_per_s,
    write_through,
)

if TYPE_CHECKING:
    from pathlib import Path

MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,errors=remount-ro
60 22 0:50 / /mnt/team rw,relatime shared:9 - nfs4 filer:/team rw,vers=4.2,acdirmax=60
61 22 0:51 / /mnt/my\\040data rw - lustre mgs:/data rw,flock
"""


def test_the_innermost_mount_is_that_of_a_folder() -> None:
    assert mount_of(MOUNTS, "/mnt/team/runs")[0] == "nfs4"
    assert "acdirmax=60" in mount_of(MOUNTS, "/mnt/team")[1]
    assert mount_of(MOUNTS, "/mnt/teamwork")[0] == "ext4"
    assert mount_of(MOUNTS, "/mnt/my data/x")[0] == "lustre"
    assert mount_of("", "/mnt") == ("", "")


def test_a_folder_that_is_not_there_yet_is_judged_by_the_one_above(tmp_path: Path) -> None:
    found = folder_facts(this_host(), tmp_path / "runs" / "new")
    assert found.filesystem
    assert found.free_bytes > 0
    assert not (tmp_path / "runs").exists()


def test_a_file_is_seen_when_it_holds_all_that_was_written(tmp_path: Path) -> None:
    path = tmp_path / "token"
    write_through(path, b"one")
    later = threading.Timer(0.2, write_through, (path, b"two"), {"append": True})
    later.start()
    taken_s = seen_after_s(path, b"onetwo", 20.0)
    later.join()
    assert taken_s is not None
    assert taken_s > 0.05
    assert seen_after_s(path, b"other", 0.05) is None


def test_speeds_are_of_real_bytes(tmp_path: Path) -> None:
    path = tmp_path / "speed"
    assert write_bytes_per_s(path, 3 << 20) > 0
    assert path.stat().st_size == 3 << 20
    assert read_bytes_per_s(path) > 0
    with pytest.raises(OSError, match="No such file"):
        read_bytes_per_s(tmp_path / "none")
