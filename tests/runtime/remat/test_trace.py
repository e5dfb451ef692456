"""Bytes and operations that a trace counts, against what can be told by hand."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.runtime.remats import run_models

pytestmark = pytest.mark.tf
CODE = """
from tfdyno.runtime.remat.functional import functionals
from tfdyno.runtime.remat.trace import _flops, trace

def counted():
    graph = tf.__internal__.FuncGraph("count")
    with graph.as_default():
        image, kernel = tf.zeros((2, 8, 8, 4)), tf.zeros((3, 3, 4, 5))
        with tf.GradientTape() as tape:
            tape.watch([image, kernel])
            y = tf.nn.conv2d(image, kernel, 1, "SAME")
        tape.gradient(y, [image, kernel])
        tf.nn.depthwise_conv2d(image, tf.zeros((3, 3, 4, 2)), (1, 1, 1, 1), "SAME")
        tf.einsum("abc,cde->abde", tf.zeros((2, 7, 3)), tf.zeros((3, 4, 5)))
        tf.matmul(tf.zeros((8, 6)), tf.zeros((8, 7)), transpose_a=True)
    wanted = ("Conv", "Depthwise", "Einsum", "MatMul")
    return {x.type: _flops(x) for x in graph.get_operations() if x.type.startswith(wanted)}
result["counted"] = counted()

# Blocks whose numbers can be told by hand.
wide = keras.Sequential([keras.Input((32,)), *[
    keras.Sequential([L.Dense(64, activation="relu"), L.Dense(32)]) for _ in range(3)]])
first = wide.layers[0]
traced = trace(wide, tf.TensorSpec((8, 32)), [first], functionals(wide))
span = next(each for each in traced.spans if each.key == id(first))
result["known"] = {
    "saved_bytes": traced.kept_bytes(span.first, span.last) - span.passed_bytes,
    "forward_flops": traced.forward_flops(span.first, span.last),
}
"""


@functools.cache
def results() -> dict[str, Any]:
    return run_models(CODE)


def test_bytes_and_operations_of_two_dense_layers() -> None:
    found = results()["known"]
    # 8 samples through Dense(32 -> 64, relu) and Dense(64 -> 32): the relu is kept for both
    # gradients, the result is read by the next block.
    assert found["saved_bytes"] == 8 * 64 * 4
    products = 2 * 8 * 32 * 64 * 2
    assert found["forward_flops"] == products + 8 * (64 + 64 + 32)  # biases and relu


def test_operations_of_a_convolution_an_einsum_and_a_matrix_product() -> None:
    assert results()["counted"] == {
        "Conv2D": 2.0 * (2 * 8 * 8 * 5) * (3 * 3 * 4),
        "Conv2DBackpropFilter": 2.0 * (2 * 8 * 8 * 5) * (3 * 3 * 4),
        "Conv2DBackpropInput": 2.0 * (2 * 8 * 8 * 5) * (3 * 3 * 4),
        "DepthwiseConv2dNative": 2.0 * (2 * 8 * 8 * 8) * 9,
        "Einsum": 2.0 * 2 * 7 * 3 * 4 * 5,
        "MatMul": 2.0 * 6 * 7 * 8,
    }
