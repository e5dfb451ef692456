"""runtime/convert_shard: a shard is whole and noted, or it is not there."""

from __future__ import annotations

import hashlib
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.runtime.forks import forked

from tfdyno.core.base.codec import from_json
from tfdyno.core.deploy.dataset import Skipped, Written
from tfdyno.jobs.data.verify import record_count

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf
WRITE = """
import os, sys
from pathlib import Path
import tensorflow as tf
from tfdyno.core.deploy.dataset import Skipped
from tfdyno.core.base.errors import TfdynoError
from tfdyno.runtime.data.convert.shard import write_shard

compression, count, limit, fail = sys.argv[1], *map(int, sys.argv[2:])
if limit:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
skipped = []
def records():
    for number in range(count):
        if number == fail:
            raise ValueError("the source is gone")
        if number == 1:
            skipped.append(Skipped(where="x.png", why="no image", shard="shard"))
            continue
        yield bytes([number % 251]) * 1000
try:
    write_shard(Path("data/shard"), records(), compression=compression,
                journal=Path("data/journal"), skipped=skipped)
except (TfdynoError, ValueError) as error:
    print(error)
"""


def write(folder: Path, compression: str = "none", count: int = 50, limit: int = 0,
          fail: int = -1) -> str:  # fmt: skip
    (folder / "data").mkdir(exist_ok=True)
    return forked(WRITE, compression, str(count), str(limit), str(fail), folder=folder).strip()


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_shard_is_noted_with_what_it_is(tmp_path: Path, compression: str) -> None:
    assert write(tmp_path, compression) == ""
    data = (tmp_path / "data/shard").read_bytes()
    line = (tmp_path / "data/journal").read_bytes()
    found = from_json(line, Written)
    assert found.shard.records == 49 == record_count(tmp_path / "data/shard", compression)
    assert found.shard.size_bytes == len(data)
    assert found.shard.sha256 == hashlib.sha256(data).hexdigest()
    assert found.skipped == (Skipped(where="x.png", why="no image", shard="shard"),)
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["journal", "shard"]
    assert write(tmp_path, compression) == ""  # the same bytes, whatever the time is
    assert (tmp_path / "data/shard").read_bytes() == data
    assert (tmp_path / "data/journal").read_bytes() == line * 2


def test_what_fails_midway_leaves_nothing(tmp_path: Path) -> None:
    assert write(tmp_path, fail=20) == "the source is gone"
    assert list((tmp_path / "data").iterdir()) == []


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_no_room_is_a_sentence_and_leaves_nothing(tmp_path: Path, compression: str) -> None:
    said = write(tmp_path, compression, count=200_000, limit=200_000)
    assert said == (
        "cannot write data/shard: File too large; raise the limit on the size of files (ulimit "
        "-f), then give the same command again."
    )
    assert list((tmp_path / "data").iterdir()) == []


def test_a_full_disk_says_so(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(tmp_path / "data")]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting needs root")
    try:
        said = write(tmp_path, count=500)
        assert said == (
            "cannot write data/shard: No space left on device; free some space, then give the "
            "same command again."
        )
        assert list((tmp_path / "data").iterdir()) == []
    finally:
        subprocess.run(["umount", str(tmp_path / "data")], check=True)
