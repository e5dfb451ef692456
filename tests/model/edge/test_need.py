"""What a graph needs: the lives of its values by hand, and arithmetic with its loops."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.deploy.litert_graph import (
    LitertGraph,
    LitertOperator,
    LitertPort,
    LitertSubgraph,
    LitertTensor,
)
from tfdyno.model.edge.need import need_of, peak


def tensor(size: int, *, constant: bool = False, dtype: str = "float32") -> LitertTensor:
    return LitertTensor(
        name=f"net/layer{size}/op", dtype=dtype, shape=(1, size), open_axes=(0,),
        size_bytes=size, constant=constant,
    )  # fmt: skip


def graph(tensors: list[LitertTensor], operators: list[LitertOperator], *more: LitertSubgraph,
          ends: tuple[int, int]) -> LitertGraph:  # fmt: skip
    first, last = ends
    main = LitertSubgraph(
        tensors=tuple(tensors), operators=tuple(operators), inputs=(first,), outputs=(last,)
    )
    return LitertGraph(
        subgraphs=(main, *more), signature="serving_default", size_bytes=999,
        inputs=(LitertPort(name="in", tensor=first),),
        outputs=(LitertPort(name="out", tensor=last),),
    )  # fmt: skip


def step(source: int, target: int, *, kind: str = "RELU", arithmetic: int = 0) -> LitertOperator:
    return LitertOperator(kind=kind, inputs=(source,), outputs=(target,), arithmetic=arithmetic)


def test_a_chain_holds_two_neighbours_at_once() -> None:
    # 32 -> 96 -> 64 -> 16: the most is 96 + 64, at the second operator
    chain = graph([tensor(n) for n in (32, 96, 64, 16)], [step(0, 1), step(1, 2), step(2, 3)],
                  ends=(0, 3))  # fmt: skip
    assert peak(chain, 0) == (160, 1)


def test_a_value_that_is_used_again_lives_until_then() -> None:
    # a residual: value 1 (96) is added to value 3 at the end
    tensors = [tensor(n) for n in (32, 96, 64, 96, 96)]
    last = LitertOperator(kind="ADD", inputs=(1, 3), outputs=(4,))
    residual = graph(tensors, [step(0, 1), step(1, 2), step(2, 3), last], ends=(0, 4))
    assert peak(residual, 0) == (96 + 96 + 96, 3)


def test_weights_take_no_memory_of_values() -> None:
    tensors = [tensor(16), tensor(4096, constant=True), tensor(16)]
    dense = LitertOperator(kind="FULLY_CONNECTED", inputs=(0, 1, -1), outputs=(2,))
    found = need_of(graph(tensors, [dense], ends=(0, 2)))
    assert (found.live_bytes, found.weight_bytes) == (32, 4096)
    assert found.moved_bytes == 16 + 4096 + 16


def test_every_value_starts_on_a_sixteenth_byte() -> None:
    assert peak(graph([tensor(1), tensor(17)], [step(0, 1)], ends=(0, 1)), 0)[0] == 16 + 32


def test_a_loop_counts_as_often_as_it_runs() -> None:
    body = LitertSubgraph(
        tensors=(tensor(48), tensor(48, dtype="int8")),
        operators=(step(0, 1, arithmetic=10),), inputs=(0,), outputs=(1,),
    )  # fmt: skip
    loop = LitertOperator(kind="WHILE", inputs=(0,), outputs=(1,), calls=(1,), repeats=12)
    found = need_of(graph([tensor(16), tensor(16)], [loop], body, ends=(0, 1)))
    assert (found.float_arithmetic, found.integer_arithmetic) == (0, 120)
    assert (found.operators, found.table_operators) == (13, 2)
    assert found.port_bytes == 32
    assert found.live_bytes == 16 + 16 + 48 + 48


@given(sizes=st.lists(st.integers(1, 5000), min_size=2, max_size=12))
def test_the_peak_lies_between_the_largest_value_and_all_of_them(sizes: list[int]) -> None:
    tensors = [tensor(size) for size in sizes]
    chain = graph(tensors, [step(i, i + 1) for i in range(len(sizes) - 1)],
                  ends=(0, len(sizes) - 1))  # fmt: skip
    bytes_at_once, place = peak(chain, 0)
    assert max(sizes) <= bytes_at_once <= sum(sizes) + 16 * len(sizes)
    assert 0 <= place < len(sizes)


def test_the_layer_at_the_peak_is_named() -> None:
    chain = graph([tensor(n) for n in (32, 96, 64)], [step(0, 1), step(1, 2)], ends=(0, 2))
    assert need_of(chain, ("one", "two")).peak_operator == "RELU of two"
    assert need_of(chain).peak_operator == "RELU"
    assert need_of(chain).open_batch


def test_an_empty_graph_needs_its_input() -> None:
    found = need_of(graph([tensor(16)], [], ends=(0, 0)))
    assert found.live_bytes == pytest.approx(16)
    assert found.kinds == ()
