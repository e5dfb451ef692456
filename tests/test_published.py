"""scripts/published.py: rows that outlast a kill, and the document that is made of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from published import about, json_text, kept_rows

if TYPE_CHECKING:
    from pathlib import Path


def test_a_line_that_a_kill_cut_short_is_no_row(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    assert list(kept_rows(file)) == []
    file.write_text('{"script": "a.py"}\n{"script": "b.py", "cla')
    assert list(kept_rows(file)) == [{"script": "a.py"}]


def test_a_document_has_a_line_for_each_row() -> None:
    document = {"about": {"date": "2026-11-22"}, "rows": [{"name": "a"}, {"name": "ü"}]}
    text = json_text(document)
    assert json.loads(text) == document
    assert text.splitlines()[2:4] == ['{"name": "a"},', '{"name": "ü"}']


def test_the_machine_and_the_versions_are_told() -> None:
    found = about()
    assert list(found) == ["date", "cpu", "cpu_count", "system", "tensorflow", "keras", "tfdyno"]
    assert found["cpu_count"] > 0
    assert found["keras"].count(".") == 2
