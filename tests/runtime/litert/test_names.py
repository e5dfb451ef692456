"""Operations of a converted graph are named by the layers of the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfdyno.runtime.litert.file import read
from tfdyno.runtime.litert.names import float_operators, layer_of

DATA = Path(__file__).parents[1].parent / "data" / "litert"
LAYERS = {"dense", "dense_1", "block", "conv"}


@pytest.mark.parametrize(
    ("path", "layer"),
    [
        ("net_1/dense_1/MatMul", "dense"),  # the model's own number is on every part
        ("net_1/dense_1_1/MatMul", "dense_1"),
        ("net/dense_1/MatMul", "dense_1"),
        ("net_1/block_1/conv_1/Conv2D;net_1/block_1/conv_1/Relu", "conv"),
        ("StatefulPartitionedCall:0", ""),
        ("", ""),
    ],
)
def test_a_path_names_its_innermost_layer(path: str, layer: str) -> None:
    assert layer_of(path, LAYERS) == layer


@pytest.mark.parametrize(
    ("path", "model", "layer"),
    [
        ("functional_1/dense_1/MatMul", "functional_1", "dense_1"),  # as Keras named them
        ("functional_1_1/dense_1_1/MatMul", "functional_1", "dense_1"),  # and TensorFlow anew
        ("net_1/dense_1/MatMul", "net", "dense"),
    ],
)
def test_the_number_of_the_models_own_name_is_none_of_tensorflows(
    path: str, model: str, layer: str
) -> None:
    assert layer_of(path, LAYERS, model) == layer


def test_without_layers_the_parts_between_stand_for_them() -> None:
    assert layer_of("net_1/block_1/conv_1/Conv2D", ()) == "block/conv"


def test_what_stayed_float_is_named() -> None:
    assert float_operators(read(DATA / "wave-int8.tflite"), {"wave", "before"}) == ["SIN of wave"]
    assert float_operators(read(DATA / "cnn-int8.tflite")) == []
    assert len(float_operators(read(DATA / "cnn.tflite"))) >= 6
