"""The files of a pipeline, and how fast they are read in order."""

from __future__ import annotations

import pytest
from tests.runtime.feed_looks import found

pytestmark = pytest.mark.tf
MIB = 1 << 20


@pytest.mark.parametrize("name", ["records", "listed", "slices"])
def test_names_that_the_pipeline_holds_are_found(name: str) -> None:
    assert found()["named"][name] == found()["files"]


def test_texts_are_no_files() -> None:
    assert found()["named"]["texts"] == []


def test_a_file_is_read_cold_and_warm() -> None:
    seen = found()["disk"]
    assert (seen["files"], seen["total_bytes"], seen["read_bytes"]) == (1, 24 * MIB, 24 * MIB)
    assert seen["cold_s"] > 0
    assert seen["warm_s"] > 0
    if not seen["disk_bytes"]:
        pytest.skip("this file system does not forget, or does not tell")
    assert seen["disk_bytes"] >= 0.9 * 24 * MIB


def test_of_many_bytes_a_part_is_read() -> None:
    seen = found()["little"]
    assert (seen["files"], seen["read_bytes"]) == (6, 300_000)
    assert seen["read_files"] == 2  # of 203,200 bytes each
    assert seen["total_bytes"] == 6 * 203_200


def test_files_that_may_not_be_forgotten_stay_in_memory() -> None:
    assert found()["warm_only"]["disk_bytes"] == 0


def test_files_that_are_not_there_say_nothing() -> None:
    assert found()["no_files"] is None
    assert found()["unread"] is None  # a folder has a size, and no bytes to read


def test_forgetting_has_a_limit_of_time() -> None:
    assert found()["forgot"] == [True, False]


def test_the_file_system_is_that_of_the_longest_mount_point() -> None:
    assert found()["mounted"] == "proc"


def test_only_data_that_is_read_counts_as_open() -> None:
    assert found()["opened_files"] == [found()["large"]]
