"""TPUs of one machine of Vertex AI: known by name, and for one process."""

from __future__ import annotations

import csv
from typing import Any

import pytest
from tests.engines.plans import plan

from tfdyno.core.base.errors import UsageError
from tfdyno.engines.launch.vertex_tpu import TABLE, tpu_of, tpus


def test_every_row_has_a_source_and_as_many_chips_as_its_topology() -> None:
    with TABLE.open(newline="") as lines:
        assert all(row["source"] for row in csv.DictReader(lines, strict=True))
    for name, tpu in tpus().items():
        across, down = map(int, tpu.topology.split("x"))
        assert across * down == tpu.chips == int(name.rpartition("-")[2])


def test_a_plan_without_tpus_has_none() -> None:
    assert tpu_of(plan("vertex")) is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"extra": (("tpu", "v5-8"),)}, "did you mean v5e-8"),
        ({"nodes": 2}, "does not go with --nodes 2"),
        ({"gpus_per_node": 1, "gpu": "t4"}, "does not go with --gpus-per-node"),
        ({"extra": (("machine", "a"), ("tpu", "v5e-8"))}, "does not go with --with machine"),
    ],
)
def test_what_does_not_go_with_tpus_is_told(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        tpu_of(plan("vertex", **{"nodes": 1, "extra": (("tpu", "v5e-8"),), **given}))
