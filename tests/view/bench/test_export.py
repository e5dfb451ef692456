"""view/bench_export: the ending decides the format, and no number is lost on the way."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.core.measure.test_measurement_document import ONE, TOLD

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.measurement import Comparison
from tfdyno.core.measure.measurement_document import measurement_of
from tfdyno.view.bench.export import exported

OTHER = replace(TOLD, measurement=replace(ONE, id="ffff", label="b"))
BETTER = Comparison(
    verdict="no_difference", ratio=1.004, interval=(0.99, 1.02), confidence_ratio=0.99, paired=True,
    reason="The interval holds 1.",
)  # fmt: skip


def test_the_json_file_is_read_back_as_the_measurement() -> None:
    assert measurement_of(json.loads(exported(Path("a.json"), [TOLD]))) == ONE
    both = json.loads(exported(Path("a.JSON"), [TOLD, OTHER], BETTER))
    assert measurement_of(both["against"]).id == "ffff"


def test_the_csv_has_every_sample_as_it_was_measured() -> None:
    rows = list(csv.DictReader(io.StringIO(exported(Path("a.csv"), [TOLD, OTHER]).decode())))
    own = [row for row in rows if row["measurement"] == ONE.id]
    assert [float(row["step_s"]) for row in own] == [9.0, 0.1, 0.3, 0.1, 0.11]
    assert [row["steady"] for row in own] == ["0", "1", "0", "1", "1"]
    assert [row["run"] for row in own] == ["1", "1", "1", "1", "2"]
    assert len(rows) == 10


def test_the_markdown_begins_with_the_answer_and_has_the_doubts() -> None:
    text = exported(Path("a.md"), [TOLD]).decode()
    assert text.startswith("**convnet at batch 64 on 2 CPUs (a CPU): 100 ms a step (90–110), ")
    assert "\n> The steps vary by 9 %.\n" in text
    assert "| 2 | 110 ms | 1 | 1.00 s | 1 GiB | accuracy 0.900 |" in text


def test_the_markdown_of_a_pair_begins_with_the_comparison() -> None:
    text = exported(Path("a.md"), [TOLD, OTHER], BETTER).decode()
    assert text.startswith(
        "**No difference between B and A: B is 1.004x as fast (0.990–1.020, 99 %).** "
        "The interval holds 1.\n"
    )
    assert "\n**A: convnet" in text
    assert "\n**B: b: convnet" in text


@pytest.mark.parametrize("name", ["a.txt", "results", "a.json.gz", ".csv"])
def test_a_name_without_a_format_is_refused(name: str) -> None:
    with pytest.raises(
        UsageError, match=r"names no format; end it with one of \.json, \.csv, \.md"
    ):
        exported(Path(name), [TOLD])
