"""A machine whose batches the user timed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.choose.serving_measured import read_measured

if TYPE_CHECKING:
    from pathlib import Path


def written(folder: Path, content: object) -> Path:
    path = folder / "cpu.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_table_of_seconds_by_batch_is_a_machine(tmp_path: Path) -> None:
    table = {"latency_s_by_batch": {"8": 0.02, "1": 0.007}}
    found = read_measured(written(tmp_path, table), 0.5)
    assert found.name == "cpu"
    assert found.latency_s == {1: 0.007, 8: 0.02}
    assert found.usd_per_h == 0.5


def test_what_a_server_tells_of_its_batching_is_one_too(tmp_path: Path) -> None:
    told = {"event": "ready", "name": "cnn", "batching": {"latency_s_by_batch": {"1": 0.007}}}
    assert read_measured(written(tmp_path, told)).latency_s == {1: 0.007}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "is no JSON"),
        ("[]", "has no latency by batch"),
        ({}, "has no latency by batch"),
        ({"latency_s_by_batch": {}}, "has no latency by batch"),
        ({"latency_s_by_batch": {"0": 0.1}}, "a batch of 0 in 0.1 s is not possible"),
        ({"latency_s_by_batch": {"x": 0.1}}, "a batch of x in 0.1 s is not possible"),
        ({"latency_s_by_batch": {"1": 0}}, "a batch of 1 in 0 s is not possible"),
        ({"latency_s_by_batch": {"1": True}}, "a batch of 1 in True s is not possible"),
        ('{"latency_s_by_batch": {"1": NaN}}', "a batch of 1 in nan s is not possible"),
        ({"name": 3, "latency_s_by_batch": {"1": 0.1}}, "is no text"),
    ],
)
def test_what_is_no_such_table_is_refused_in_words(
    tmp_path: Path, content: object, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        read_measured(written(tmp_path, content))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_measured(tmp_path / "none.json")
