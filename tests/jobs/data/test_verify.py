"""jobs/data_verify: every way in which a shard can differ from its manifest is told."""

from __future__ import annotations

import gzip
import hashlib
import os
import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.dataset import Begun, ConvertSettings, Dataset, Shard, Source
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.data.verify import verify
from tfdyno.probe.files.csv_file import csv_file
from tfdyno.store.dataset_folder import DatasetFolder

if TYPE_CHECKING:
    from pathlib import Path


def made(folder: Path, compression: str = "none") -> tuple[Path, Dataset]:
    """A finished data set of two shards with three records each, made of a table."""
    table = folder / "table.csv"
    table.write_text("x\n1\n2\n3\n4\n5\n6\n")
    records = b"".join(struct.pack("<QI", size, 0) + bytes(size + 4) for size in (5, 0, 9))
    data = gzip.compress(records) if compression == "gzip" else records
    (folder / "out").mkdir()
    shards = []
    for name in ("a", "b"):
        (folder / "out" / name).write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        shards.append(Shard(file=name, records=3, size_bytes=len(data), sha256=digest))
    facts = csv_file(table, progress=silent)
    dataset = Dataset(
        tfdyno="0.1.0",
        records=6,
        features=facts.features,
        shards=tuple(shards),
        source=Source(path=str(table), sha256=facts.sha256, files=1, size_bytes=facts.size_bytes),
        settings=ConvertSettings(kind="csv", shards=2, compression=compression),
    )
    DatasetFolder(folder / "out").finish(dataset, "")
    return folder / "out", dataset


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_what_is_as_it_was_written_is_sound(tmp_path: Path, compression: str) -> None:
    folder, dataset = made(tmp_path, compression)
    said: list[str] = []
    found = verify(folder, progress=said.append)
    assert found.damaged == ()
    assert (found.shards, found.records, found.size_bytes) == (2, 6, dataset.size_bytes)
    assert found.source_changed is None
    assert said == ["checking shard 1 of 2", "checking shard 2 of 2"]


def test_changed_bytes_and_missing_files_are_told(tmp_path: Path) -> None:
    folder, _ = made(tmp_path)
    data = bytearray((folder / "a").read_bytes())
    data[-1] ^= 128
    (folder / "a").write_bytes(data)
    (folder / "b").unlink()
    assert [(one.file, one.why) for one in verify(folder).damaged] == [
        ("a", "has other bytes than were written (sha256)"), ("b", "is missing"),
    ]  # fmt: skip


def test_a_manifest_that_counts_otherwise_is_told(tmp_path: Path) -> None:
    folder, dataset = made(tmp_path)
    first, second = dataset.shards
    data = (folder / "b").read_bytes()[:-1]
    (folder / "b").write_bytes(data)
    cut = replace(second, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    changed = replace(dataset, shards=(replace(first, records=4), cut))
    DatasetFolder(folder).finish(changed, "")
    assert [one.why for one in verify(folder).damaged] == [
        "has 3 records instead of 4", "cannot be read: it ends in the middle of a record",
    ]  # fmt: skip


def test_the_source_is_compared_when_it_is_given(tmp_path: Path) -> None:
    folder, dataset = made(tmp_path)
    table = tmp_path / "table.csv"
    assert verify(folder, source=table).source_changed is False
    os.utime(table, ns=(1, 1))
    assert verify(folder, source=table).source_changed is True
    assert dataset.source.path == str(table)


def test_a_source_that_could_not_be_converted_any_more_has_changed(tmp_path: Path) -> None:
    folder, _ = made(tmp_path)
    (tmp_path / "table.csv").write_text("x,y\n1\n")
    (folder / "b").unlink()
    found = verify(folder, source=tmp_path / "table.csv")
    assert found.source_changed is True
    assert [one.file for one in found.damaged] == ["b"]
    (tmp_path / "pictures" / "ant").mkdir(parents=True)
    (tmp_path / "pictures" / "ant" / "1.png").touch()
    assert verify(folder, source=tmp_path / "pictures").source_changed is True
    with pytest.raises(UsageError, match="no file or folder"):
        verify(folder, source=tmp_path / "tables.csv")


def test_what_is_not_finished_is_refused(tmp_path: Path) -> None:
    folder = DatasetFolder(tmp_path)
    with pytest.raises(UsageError, match="no converted data set"):
        verify(tmp_path)
    settings = ConvertSettings(kind="csv", shards=2)
    folder.start(Begun(source_sha256="f00", settings=settings), [])
    with pytest.raises(UsageError, match="it is not finished"):
        verify(tmp_path)
