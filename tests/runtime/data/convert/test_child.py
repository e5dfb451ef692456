"""runtime/convert: the child writes what is asked, tells how far it is, and names what is bad."""

from __future__ import annotations

import json
from array import array
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.forks import handled
from tests.runtime.pictures import make_pictures

from tfdyno.core.deploy.dataset import ConvertSettings, Feature
from tfdyno.core.messages.data import WRITE_SHARDS, ShardPlan, WriteShards
from tfdyno.jobs.data.verify import record_count

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf
IMAGES = ConvertSettings(kind="images", shards=2)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return make_pictures(tmp_path / "pictures", 9, 8)


def written(folder: Path, *shards: ShardPlan, **more: Any) -> dict[str, Any]:
    (folder / "data").mkdir(exist_ok=True)
    given: dict[str, Any] = {
        "source": folder / "pictures", "folder": folder / "data", "features": (),
        "journal": folder / "data/journal", "settings": IMAGES, "shards": shards, **more,
    }  # fmt: skip
    return handled(WRITE_SHARDS, WriteShards(**given), folder)


def images(folder: Path) -> tuple[tuple[str, int, int], ...]:
    paths = sorted(path for path in folder.rglob("*.*"))
    return tuple((str(path.relative_to(folder)), 1, path.stat().st_size) for path in paths)


def test_shards_are_written_one_after_the_other(tmp_path: Path, pictures: Path) -> None:
    listed = images(pictures)
    shards = ShardPlan(file="a", images=listed[:4]), ShardPlan(file="b", images=listed[4:])
    found = written(tmp_path, *shards)
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
    listed = images(pictures)
    (pictures / listed[5][0]).write_bytes(bytes(listed[5][2]))
    shards = ShardPlan(file="a", images=listed[:4]), ShardPlan(file="b", images=listed[4:])
    found = written(tmp_path, *shards)
    assert found["exit_code"] == 2
    assert f"{pictures / listed[5][0]} cannot be read: Unknown image" in found["refused"]
    assert "--skip-bad" in found["refused"]
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["a", "journal"]
    written(tmp_path, shards[1], skip_bad=True)
    line = json.loads((tmp_path / "data/journal").read_text().splitlines()[-1])
    assert line["shard"]["records"] == 4
    assert [(one["where"], one["shard"]) for one in line["skipped"]] == [(listed[5][0], "b")]


def test_rows_of_a_table_are_written(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("x\n5\n6\n7\n")
    (tmp_path / "offsets").write_bytes(array("Q", [6, 2, 4]))
    written(
        tmp_path,
        ShardPlan(file="a", rows=(0, 2)),
        ShardPlan(file="b", rows=(2, 3)),
        source=tmp_path / "table.csv",
        offsets=tmp_path / "offsets",
        settings=ConvertSettings(kind="csv", shards=2, compression="gzip"),
        features=(Feature(name="x", dtype="int64", role="column"),),
    )
    assert [record_count(tmp_path / "data" / name, "gzip") for name in "ab"] == [2, 1]
