"""jobs/data/verify: the records of a file are those that TensorFlow wrote."""

from __future__ import annotations

import gzip
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.forks import forked

from tfdyno.jobs.data.verify import record_count

if TYPE_CHECKING:
    from pathlib import Path

WRITE = """
import sys
import tensorflow as tf
for name, compression in (("plain", ""), ("packed", "GZIP")):
    with tf.io.TFRecordWriter(name, compression) as writer:
        for number in range(7):
            writer.write(b"x" * number * 1000)
"""


def framed(*sizes: int) -> bytes:
    """Records with checksums of 0, as the file has them."""
    return b"".join(struct.pack("<QI", size, 0) + bytes(size + 4) for size in sizes)


@pytest.mark.tf
def test_what_tensorflow_wrote_is_counted(tmp_path: Path) -> None:
    forked(WRITE, folder=tmp_path)
    assert record_count(tmp_path / "plain", "none") == 7
    assert record_count(tmp_path / "packed", "gzip") == 7


@given(sizes=st.lists(st.integers(0, 3000)))
def test_every_record_counts_once(
    sizes: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("records")
    (folder / "plain").write_bytes(framed(*sizes))
    (folder / "packed").write_bytes(gzip.compress(framed(*sizes)))
    assert record_count(folder / "plain", "none") == len(sizes)
    assert record_count(folder / "packed", "gzip") == len(sizes)


@pytest.mark.parametrize("cut", [1, 5, 110, 115])
def test_a_file_that_ends_in_a_record_is_refused(tmp_path: Path, cut: int) -> None:
    data = framed(50, 100)[:-cut]
    (tmp_path / "plain").write_bytes(data)
    (tmp_path / "packed").write_bytes(gzip.compress(data))
    for name, compression in (("plain", "none"), ("packed", "gzip")):
        with pytest.raises(ValueError, match="in the middle of a record"):
            record_count(tmp_path / name, compression)


def test_a_cut_or_foreign_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes(gzip.compress(framed(50) * 100)[:-9])
    (tmp_path / "foreign").write_bytes(framed(50))
    for name in ("cut", "foreign"):
        with pytest.raises(ValueError, match=r"ended before|Not a gzipped file|invalid"):
            record_count(tmp_path / name, "gzip")
