"""Operations are counted by the definition of each operator, by hand."""

from __future__ import annotations

import pytest

from tfdyno.core.deploy.litert_graph import LitertTensor
from tfdyno.runtime.litert.arithmetic import arithmetic_of


def shaped(*shape: int, constant: bool = False) -> LitertTensor:
    return LitertTensor(name="", dtype="int8", shape=shape, size_bytes=0, constant=constant)


@pytest.mark.parametrize(
    ("kind", "inputs", "output", "expected"),
    [
        ("CONV_2D", [(1, 8, 8, 4), (16, 3, 3, 4)], (1, 6, 6, 16), 2 * 6 * 6 * 16 * 3 * 3 * 4),
        ("CONV_2D", [(1, 8, 8, 4), (16, 3, 3, 2)], (1, 6, 6, 16), 2 * 6 * 6 * 16 * 3 * 3 * 2),
        ("DEPTHWISE_CONV_2D", [(1, 8, 8, 4), (1, 3, 3, 4)], (1, 6, 6, 4), 2 * 6 * 6 * 4 * 9),
        ("FULLY_CONNECTED", [(1, 100), (10, 100)], (1, 10), 2 * 100 * 10),
        ("BATCH_MATMUL", [(2, 5, 7), (2, 7, 3)], (2, 5, 3), 2 * 2 * 5 * 7 * 3),
        ("TRANSPOSE_CONV", [(4,), (5, 3, 3, 4), (1, 8, 8, 4)], (1, 16, 16, 5),
         2 * 8 * 8 * 4 * 5 * 3 * 3),
        ("MAX_POOL_2D", [(1, 8, 8, 4)], (1, 4, 4, 4), 8 * 8 * 4),
        ("MEAN", [(1, 8, 8, 4)], (1, 4), 8 * 8 * 4),
        ("ADD", [(1, 8), (1, 8)], (1, 8), 8),
        ("RESHAPE", [(1, 8, 8, 4)], (1, 256), 0),
    ],
)  # fmt: skip
def test_an_operator_counts_what_it_multiplies_and_adds(
    kind: str, inputs: list[tuple[int, ...]], output: tuple[int, ...], expected: int
) -> None:
    given = [shaped(*shape) for shape in inputs]
    assert arithmetic_of(kind, given, [shaped(*output)]) == expected
