"""What ``data bench --json`` prints."""

from __future__ import annotations

import json

import pytest
from tests.feeds import feed
from tests.view.feeds_told import told

from tfdyno.core.base.codec import from_builtins, to_json
from tfdyno.core.measure.feed import Feed
from tfdyno.core.measure.feed_document import data_bench_document


def document(**changes: object) -> dict[str, object]:
    found: dict[str, object] = json.loads(to_json(data_bench_document(told(**changes))))
    return found


def test_figures_have_plain_names_and_numbers() -> None:
    seen = document()
    assert seen["samples_per_s"] == {"low": 190.0, "best": 200.0, "high": 210.0}
    assert seen["batches_per_s"] == 20.0
    assert seen["output_bytes_per_s"] == 200_000.0
    assert seen["read_bytes_per_s"] == 200_000.0
    assert (seen["cpus"], seen["busy_cpus"], seen["pace"]) == (2.0, 1.96, "cpu")
    assert seen["limits"] == {
        "cpu_samples_per_s": 200.0,
        "thread_samples_per_s": {"low": 2174.0, "best": 2174.0, "high": 2174.0},
        "thread_stages": ["batch"],
        "disk_samples_per_s": 1000.0,
    }


def test_more_cpus_have_an_efficiency() -> None:
    # by hand: 200 of twice 110
    scaling = document()["scaling"]
    assert isinstance(scaling, list)
    assert [point["cpus"] for point in scaling] == [1.0, 2.0]
    assert [round(point["efficiency_ratio"], 3) for point in scaling] == [1.0, 0.909]


def test_stages_cards_and_rounds_are_listed() -> None:
    seen = document()
    stages, needs, rounds = seen["stages"], seen["needs"], seen["rounds"]
    assert isinstance(stages, list)
    assert isinstance(needs, list)
    assert isinstance(rounds, list)
    assert stages[2]["place"] == "train.py:9"
    assert stages[2]["operations"] == ["DecodeJpeg"]
    assert needs[0]["cpus"] == {"low": 2.8, "best": 4.0, "high": 5.4}
    assert needs[0]["fed_interval"] == [0.4, pytest.approx(2 / 3)]
    assert rounds[0]["samples_per_s"] == 200.0
    assert len(rounds) == len(feed().rounds)


def test_the_disk_has_its_rates() -> None:
    disk = document()["disk"]
    assert isinstance(disk, dict)
    assert disk["cold_bytes_per_s"] == 1e6
    assert disk["is_cold"]
    assert document(feed=feed(disk=None))["disk"] is None


def test_what_is_not_known_is_null() -> None:
    seen = document(cold_per_s=None, disk_per_s=None)
    assert seen["cold_samples_per_s"] is None
    assert seen["first_pass_samples_per_s"] is None


def test_the_feed_reads_back() -> None:
    assert from_builtins(document()["feed"], Feed) == feed()
