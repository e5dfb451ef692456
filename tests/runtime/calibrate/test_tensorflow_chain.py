from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

from tfdyno.runtime.calibrate import tensorflow_chain as chains
from tfdyno.runtime.calibrate.points import Point
from tfdyno.runtime.calibrate.tensorflow_kernels import built

POINT = Point(operation="multiply", dtype="f32", sizes={"elements": 64}, form="same")
PRODUCT = Point(
    operation="gemm", dtype="f32", sizes={"m": 8, "n": 4, "k": 2}, form="forward"
)  # fmt: skip


def placeholders(given: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tf.compat.v1.placeholder(one.dtype, one.shape) for one in given)


def operations(point: Point, count: int, kind: str) -> int:
    """How many operations of a kind the graph of a chain has."""
    run, given = built(point)
    graph = tf.Graph()
    with graph.as_default():
        chains._ordered(run, placeholders(given), count)
    return sum(one.type == kind for one in graph.get_operations())


def test_a_chain_holds_its_kernels_one_by_one() -> None:
    assert operations(POINT, 5, "Mul") == 5
    assert operations(PRODUCT, 3, "MatMul") == 3


def test_each_waits_for_the_one_before() -> None:
    run, given = built(PRODUCT)
    graph = tf.Graph()
    with graph.as_default():
        chains._ordered(run, placeholders(given), 3)
    products = [one for one in graph.get_operations() if one.type == "MatMul"]
    waits = [[before.name for before in one.control_inputs] for one in products]
    assert waits == [[], [products[0].name], [products[1].name]]


@pytest.mark.parametrize("execution", ["graph", "xla"])
@pytest.mark.parametrize("point", [None, POINT, PRODUCT])
def test_a_chain_runs_in_either_execution(point: Point | None, execution: str) -> None:
    call = chains.chain(point, 3, execution)
    chains.wait(call())
    chains.wait(call())


def test_all_results_of_a_compiled_chain_are_asked_for() -> None:
    made = chains.chain(PRODUCT, 3, "xla")()
    assert [tuple(one.shape) for one in made] == [(8, 4)] * 3


def test_without_a_gpu_none_is_named() -> None:
    assert chains.devices() == []
    assert chains.release() == tf.__version__


def test_keras_takes_time_beside_a_step_and_only_processors_are_asked_for_it() -> None:
    found = chains.paces("cpu")
    assert list(found) == ["beside_step_s"]
    assert found["beside_step_s"] > 1e-5  # a loop, an iterator and callbacks of Python
