"""runtime/convert: the child writes what is asked, tells how far it is, and names what is bad."""

from __future__ import annotations

import json
from array import array
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.forks import handled
from tests.runtime.pictures import make_pictures

from tfdyno.store.record_count import record_count

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf
CHILD = "tfdyno.runtime.data.convert.child"


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return make_pictures(tmp_path / "pictures", 9, 8)


def request(folder: Path, shards: list[dict[str, Any]], **more: object) -> dict[str, Any]:
    (folder / "data").mkdir(exist_ok=True)
    return {
        "kind": "images", "source": str(folder / "pictures"), "folder": str(folder / "data"),
        "journal": str(folder / "data/journal"), "compression": "none", "skip_bad": False,
        "image_size": None, "features": [], "classes": [], "delimiter": ",", "offsets": "",
        "shards": shards, "result": str(folder / "result.json"), **more,
    }  # fmt: skip


def items(folder: Path) -> list[list[object]]:
    paths = sorted(path for path in folder.rglob("*.*"))
    return [[str(path.relative_to(folder)), 1, path.stat().st_size] for path in paths]


def test_shards_are_written_one_after_the_other(tmp_path: Path, pictures: Path) -> None:
    listed = items(pictures)
    shards = [{"file": "a", "items": listed[:4]}, {"file": "b", "items": listed[4:]}]
    found = handled(CHILD, request(tmp_path, shards))
    assert found["shards"] == 2
    assert [record_count(tmp_path / "data" / name, "none") for name in "ab"] == [4, 5]
    lines = [json.loads(line) for line in (tmp_path / "data/journal").read_text().splitlines()]
    assert [line["shard"]["file"] for line in lines] == ["a", "b"]
    assert found["said"][0] == "importing TensorFlow"
    told = json.loads(found["said"][-1])
    assert told["records"] == 9
    assert told["shard"] == 2
    assert told["bytes"] > sum(path.stat().st_size for path in pictures.rglob("*.*"))


def test_a_damaged_image_ends_it_and_keeps_the_shards_before(
    tmp_path: Path, pictures: Path
) -> None:
    listed = items(pictures)
    (pictures / str(listed[5][0])).write_bytes(bytes(int(str(listed[5][2]))))
    shards = [{"file": "a", "items": listed[:4]}, {"file": "b", "items": listed[4:]}]
    found = handled(CHILD, request(tmp_path, shards))
    assert found["exit_code"] == 2
    assert f"{pictures / str(listed[5][0])} cannot be read: Unknown image" in found["refused"]
    assert "--skip-bad" in found["refused"]
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["a", "journal"]
    found = handled(CHILD, request(tmp_path, shards[1:], skip_bad=True))
    assert found["shards"] == 1
    line = json.loads((tmp_path / "data/journal").read_text().splitlines()[-1])
    assert line["shard"]["records"] == 4
    assert [(one["where"], one["shard"]) for one in line["skipped"]] == [(listed[5][0], "b")]


def test_rows_of_a_table_are_written(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("x\n5\n6\n7\n")
    (tmp_path / "offsets").write_bytes(array("Q", [6, 2, 4]))
    found = handled(
        CHILD,
        request(
            tmp_path,
            [{"file": "a", "start": 0, "stop": 2}, {"file": "b", "start": 2, "stop": 3}],
            kind="csv",
            source=str(tmp_path / "table.csv"),
            offsets=str(tmp_path / "offsets"),
            compression="gzip",
            features=[{"name": "x", "dtype": "int64", "role": "column"}],
        ),
    )
    assert found["shards"] == 2
    assert [record_count(tmp_path / "data" / name, "gzip") for name in "ab"] == [2, 1]
