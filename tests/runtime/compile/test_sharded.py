from __future__ import annotations

import pytest

from tfdyno.core.choose.workload import TensorRole, TensorSpec
from tfdyno.runtime.compile.sharded import SHARED, dimension, sharding


def tensor(role: TensorRole, *shape: int) -> TensorSpec:
    return TensorSpec(name="x", role=role, shape=shape, dtype="float32", bytes=4)


@pytest.mark.parametrize(
    ("kind", "role", "expected"),
    [
        ("data parallel", "weight", None),
        ("data parallel", "input", 0),
        ("optimizer state", "optimizer", 0),
        ("optimizer state", "weight", None),
        ("all states", "weight", 0),
        ("tensor parallel", "weight", 1),
        ("tensor parallel", "optimizer", 1),
        ("tensor parallel", "input", None),
        ("all states", "state", None),
    ],
)
def test_each_way_divides_its_arguments(kind: str, role: TensorRole, expected: int | None) -> None:
    assert dimension(tensor(role, 8, 16), kind, 4) == expected


def test_what_does_not_divide_evenly_is_on_every_card() -> None:
    assert dimension(tensor("weight", 7, 12), "all states", 4) == 1
    assert dimension(tensor("weight", 7, 3), "all states", 4) is None
    assert dimension(tensor("weight"), "all states", 4) is None
    assert dimension(tensor("input", 6, 8), "data parallel", 4) is None


def test_a_sharding_is_written_as_xla_reads_it() -> None:
    assert sharding(tensor("weight", 8, 16), "tensor parallel", 4) == "{devices=[1,4]<=[4]}"
    assert sharding(tensor("weight", 8, 16), "optimizer state", 4) == "{replicated}"
    assert set(SHARED) == {"data parallel", "optimizer state", "all states", "tensor parallel"}
