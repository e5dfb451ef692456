"""view/convert_text: what is told of a conversion, and that nothing is claimed that is not sure."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.core.deploy.test_dataset import DATASET

from tfdyno.core.base.codec import to_json
from tfdyno.core.deploy.dataset import (
    Converted,
    DamagedShard,
    Feature,
    ReadSpeed,
    Skipped,
    Verified,
)
from tfdyno.core.measure.measurement import Comparison
from tfdyno.view.data.convert_text import convert_document, convert_text, verify_text

COMPARISON = Comparison(
    verdict="faster", ratio=2.0, interval=(1.8, 2.2), confidence_ratio=0.99, paired=True, reason=""
)
SPEED = ReadSpeed(
    before_per_s=(50.0, 200.0),
    after_per_s=(100.0, 400.0),
    comparison=COMPARISON,
    before_pipeline="keras.utils.image_dataset_from_directory",
    batch_size=32,
    image_size=(4, 6),
    whole_epochs=True,
)
TOLD = Converted(
    folder=Path("out"), dataset=DATASET, kept_shards=1, seconds_s=3.0, speed=SPEED, not_measured="",
    notes=("A note.",),
)  # fmt: skip
COLUMNS = (
    Feature(name="a", dtype="int64", role="column"),
    Feature(name="b", dtype="string", role="column"),
    Feature(name="c", dtype="string", role="column"),
    Feature(name="y", dtype="int64", role="class"),
)
TABLE = replace(
    DATASET,
    features=COLUMNS,
    settings=replace(DATASET.settings, kind="csv", label="y", shuffle_seed=None, image_size=None),
)


def told(**change: object) -> str:
    text = convert_text(replace(TOLD, **change), width=300)  # type: ignore[arg-type]
    return " ".join(text.split())


def test_everything_is_told() -> None:
    text = told()
    assert text.startswith("5 images of 2 classes in out")
    assert "size 2 shards, 160 B (150 B before)" in text
    assert "written 1 shard in 3.00 s, 1 kept from before" in text
    assert "order shuffled with seed 0" in text
    assert "holds images as 4 x 6 pixels of 8-bit RGB" in text
    assert "The converted data is 2.00x as fast as the original (1.80–2.20, 99 %)." in text
    # The geometric means of 50 and 200, and of 100 and 400: their ratio is the one that is told.
    assert "before 100 images/s keras.utils.image_dataset_from_directory" in text
    assert "after 200 images/s read_dataset.py" in text
    assert "2 turns of each, one after the other, whole epochs; batch 32 at 4 x 6" in text
    assert "reading from a slow disk was not measured" in text
    assert "- A note. - 1 was left out: ant/x.png (Input is empty)." in text
    assert "out/read_dataset.py: read(batch_size=32)" in text


def test_no_difference_and_slower_are_told_as_they_are() -> None:
    unsure = replace(COMPARISON, verdict="no_difference", ratio=1.2, interval=(0.9, 1.6))
    assert (
        "No difference is proven: the converted data is 1.20x as fast as the original "
        "(0.90–1.60, 99 %)." in told(speed=replace(SPEED, comparison=unsure))
    )
    slower = replace(COMPARISON, verdict="slower", ratio=0.5, interval=(0.4, 0.6))
    text = told(speed=replace(SPEED, comparison=slower, whole_epochs=False))
    assert "The converted data is 0.50x as fast as the original" in text
    assert "a second in the middle of an epoch" in text


def test_what_was_not_measured_claims_nothing() -> None:
    text = told(speed=None, not_measured="--no-measure")
    assert "Not measured: --no-measure." in text
    assert "images/s" not in text


def test_a_table_is_told_by_its_columns() -> None:
    text = told(dataset=TABLE)
    assert text.startswith("5 rows of 4 columns in out")
    assert "order that of the source" in text
    assert "holds features: 1 int64 and 2 text; label 'y' as 2 classes" in text
    assert "rows/s" in text
    number = replace(
        TABLE,
        classes=(),
        features=(*COLUMNS[:3], Feature(name="y", dtype="float32", role="label")),
    )
    assert "label 'y' as float32" in told(dataset=number)
    unlabelled = replace(number, settings=replace(number.settings, label=""))
    assert "label" not in told(dataset=unlabelled).replace("unlabelled", "")


def test_nothing_new_is_told_so() -> None:
    assert "all shards were there" in told(seconds_s=0.0)


def test_many_faults_are_shortened_and_the_rest_is_said_to_be_in_the_manifest() -> None:
    faults = tuple(Skipped(where=f"{number}.png", why="empty") for number in range(7))
    text = told(dataset=replace(DATASET, skipped=faults))
    assert "7 were left out: 0.png (empty)," in text
    assert "4.png (empty); dataset.json has all 7." in text


def test_lines_fit_the_screen_and_colours_only_repeat() -> None:
    plain = convert_text(TOLD, width=60)
    longest = max(plain.splitlines(), key=len)
    assert len(longest) <= 60 or "keras.utils" in longest
    coloured = convert_text(TOLD, width=60, colour=True)
    assert "\x1b[32m" in coloured
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[32m"):
        coloured = coloured.replace(code, "")
    assert coloured == plain


def test_the_document_has_the_documented_keys() -> None:
    found = json.loads(to_json(convert_document(TOLD)))
    assert set(found) == {
        "output", "records", "classes", "features", "shards", "kept_shards", "bytes", "source",
        "settings", "seconds", "skipped", "reader", "speed", "not_measured", "notes",
    }  # fmt: skip
    assert found["speed"]["ratio"] == 2.0
    assert found["speed"]["interval"] == [1.8, 2.2]
    assert found["speed"]["before_per_s"] == [50.0, 200.0]
    assert convert_document(replace(TOLD, speed=None))["speed"] is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [(None, "since"), (True, "The source has changed since."), (False, "has not changed since.")],
)
def test_a_sound_data_set_is_told_in_a_line(changed: bool | None, said: str) -> None:
    found = Verified(shards=2, records=5, size_bytes=160, source_changed=changed)
    text = verify_text("out", found)
    assert text.startswith("out: 2 shards, 5 records, 160 B, all as they were written")
    assert (said in text) == (changed is not None)


def test_damaged_shards_are_listed_with_what_to_do() -> None:
    damaged = (DamagedShard(file="b", why="is missing"),)
    text = verify_text("out", Verified(shards=2, records=5, size_bytes=160, damaged=damaged))
    assert text.splitlines() == [
        "out: 2 shards, 5 records, 160 B; 1 damaged",
        "  b  is missing",
        "The command that converted it writes them again, and no others.",
    ]
