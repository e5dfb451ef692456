"""core/dataset: a manifest is read back as it was written, and adds up."""

from __future__ import annotations

import pytest

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.dataset import ConvertSettings, Dataset, Feature, Shard, Skipped, Source

DATASET = Dataset(
    tfdyno="0.1.0",
    records=5,
    features=(Feature(name="image", dtype="string", role="pixels", shape=(4, 6, 3)),),
    classes=("ant", "bee"),
    shards=(
        Shard(file="a", records=3, size_bytes=100, sha256="1"),
        Shard(file="b", records=2, size_bytes=60, sha256="2"),
    ),
    source=Source(path="pics", sha256="3", files=6, size_bytes=150),
    settings=ConvertSettings(kind="images", shards=2, shuffle_seed=0, image_size=(4, 6)),
    skipped=(Skipped(where="ant/x.png", why="Input is empty", shard="b"),),
)


def test_a_manifest_is_read_back_as_it_was() -> None:
    assert from_json(to_json(DATASET), Dataset) == DATASET


def test_the_size_is_that_of_all_shards() -> None:
    assert DATASET.size_bytes == 160


def test_what_it_does_not_know_is_refused() -> None:
    changed = to_json(DATASET).replace(b'"kind":"images"', b'"kind":"videos"')
    with pytest.raises(UsageError, match="videos"):
        from_json(changed, Dataset, where="dataset.json")
