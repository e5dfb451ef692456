"""A .tflite file read by its schema: what is in it, and what is said of a damaged one."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.litert_graph import LitertTensor
from tfdyno.runtime.litert.file import arithmetic_of, read

if TYPE_CHECKING:
    from tfdyno.core.deploy.litert_graph import LitertGraph

DATA = Path(__file__).parents[1].parent / "data" / "litert"


def kinds(graph: LitertGraph) -> list[str]:
    return [one.kind for one in graph.main.operators]


def test_operators_come_in_the_order_in_which_they_run() -> None:
    assert kinds(read(DATA / "cnn.tflite")) == [
        "CONV_2D", "MUL", "CONV_2D", "GELU", "MEAN", "FULLY_CONNECTED", "SOFTMAX",
        "FULLY_CONNECTED",
    ]  # fmt: skip


def test_arithmetic_is_that_of_the_definition() -> None:
    graph = read(DATA / "cnn.tflite")
    first, _, second, *_ = graph.main.operators
    assert first.arithmetic == 2 * 26 * 26 * 8 * (3 * 3 * 1)
    assert second.arithmetic == 2 * 24 * 24 * 8 * (3 * 3 * 8)
    dense = [one for one in graph.main.operators if one.kind == "FULLY_CONNECTED"]
    assert sorted(one.arithmetic for one in dense) == [2 * 8 * 3, 2 * 8 * 10]


def test_ports_have_the_names_of_the_signature() -> None:
    graph = read(DATA / "cnn.tflite")
    assert graph.signature == "serving_default"
    assert [one.name for one in graph.inputs] == ["image"]
    assert {one.name for one in graph.outputs} == {"classes", "other"}
    image = graph.tensor(graph.inputs[0])
    assert (image.dtype, image.shape, image.open_axes) == ("float32", (1, 28, 28, 1), (0,))
    shapes = {one.name: graph.tensor(one).shape for one in graph.outputs}
    assert shapes == {"classes": (1, 10), "other": (1, 3)}


def test_the_scale_of_whole_values_is_read() -> None:
    graph = read(DATA / "cnn-integers.tflite")
    image = graph.tensor(graph.inputs[0])
    assert image.dtype == "int8"
    assert image.scale == pytest.approx(1 / 255, rel=1e-2)
    assert image.zero_point == -128


def test_the_loop_of_a_recurrent_layer_is_counted() -> None:
    graph = read(DATA / "rnn.tflite")
    loops = [one for one in graph.main.operators if one.kind == "WHILE"]
    assert [(one.repeats, one.repeats_known, len(one.calls)) for one in loops] == [(12, True, 2)]


@pytest.mark.parametrize("size", [0, 3, 8, 100, 3000])
def test_what_is_cut_off_is_no_model(tmp_path: Path, size: int) -> None:
    path = tmp_path / "cut.tflite"
    path.write_bytes((DATA / "cnn.tflite").read_bytes()[:size])
    with pytest.raises(UsageError, match="LiteRT model"):
        read(path)


def test_any_damage_is_read_or_refused_in_words(tmp_path: Path) -> None:
    whole, dice = (DATA / "cnn.tflite").read_bytes(), random.Random(7)
    path = tmp_path / "damaged.tflite"
    told = []
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(dice.randrange(1, 20)):
            data[dice.randrange(8, len(data))] = dice.randrange(256)
        path.write_bytes(data)
        try:
            read(path)
        except UsageError as error:
            told.append(str(error))
    assert len(told) > 5
    assert all(one.endswith("export it again.") for one in told)


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read(Path("nowhere.tflite"))


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
