"""runtime/convert_csv: each row becomes the record that its columns say, wherever it stands."""

from __future__ import annotations

import json
import math
from array import array
from typing import TYPE_CHECKING

import pytest
from tests.runtime.forks import forked

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.base.untyped import Value

pytestmark = pytest.mark.tf
READ = """
import json, sys
from pathlib import Path
import tensorflow as tf
from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.dataset import Feature
from tfdyno.core.messages.data import ShardPlan
from tfdyno.runtime.data.convert.csv_rows import Rows

first, end = json.loads(sys.argv[1])
column = lambda name, dtype, role="column": Feature(name=name, dtype=dtype, role=role)
rows = Rows(Path("table.csv"), offsets=Path("offsets"), delimiter=",", classes=("no", "yes"),
            features=(column("id", "int64"), column("size", "float32"), column("text", "string"),
                      column("kind", "int64", "class")))
found = []
try:
    for record in rows.records(ShardPlan(file="a", rows=(first, end)), None):
        values = tf.train.Example.FromString(record).features.feature
        found.append({name: repr(getattr(one, one.WhichOneof("kind")).value[0])
                      for name, one in values.items()})
except UsageError as error:
    found = str(error)
print(json.dumps(found))
"""
LINES = ["id,size,text,kind\n", "7, 1.5 ,ü,no\n", '-8,,"a, ""b""\nc",yes\n', "9,1e-3,,no"]
TABLE = "".join(LINES)
PLACES = [len("".join(LINES[:place]).encode()) for place in (1, 2, 3)]


def read(folder: Path, places: list[int], first: int, end: int) -> Value:
    (folder / "table.csv").write_text(TABLE)
    (folder / "offsets").write_bytes(array("Q", places))
    return json.loads(forked(READ, json.dumps([first, end]), folder=folder))


def test_rows_are_read_in_the_order_of_their_places(tmp_path: Path) -> None:
    last, first, middle = read(tmp_path, [PLACES[place] for place in (2, 0, 1)], 0, 3)
    assert first == {"id": "7", "size": "1.5", "text": repr("ü".encode()), "kind": "0"}
    assert middle["text"] == repr(b'a, "b"\nc')
    assert middle["kind"] == "1"
    assert middle["id"] == "-8"
    assert math.isnan(float(middle["size"]))
    assert last["text"] == "b''"
    assert float(last["size"]) == pytest.approx(1e-3)


def test_a_shard_is_a_stretch_of_the_places(tmp_path: Path) -> None:
    assert [row["id"] for row in read(tmp_path, PLACES, 1, 3)] == ["-8", "9"]
    assert [row["id"] for row in read(tmp_path, PLACES, 0, 1)] == ["7"]


@pytest.mark.parametrize("place", [0, 3, 10_000])
def test_a_row_that_is_no_longer_there_ends_it(tmp_path: Path, place: int) -> None:
    assert "table.csv has changed while it was converted" in read(tmp_path, [place], 0, 1)
