"""Every point of the table runs in TensorFlow, and makes as much as its kernel says."""

from __future__ import annotations

from math import prod

import pytest
import tensorflow as tf
from tests.runtime.swept_points import first_of_each

from tfdyno.runtime.calibrate.points import Point, kernel_of
from tfdyno.runtime.calibrate.tensorflow_kernels import built


@pytest.mark.parametrize("point", first_of_each(), ids=lambda one: f"{one.operation} {one.form}")
def test_a_kernel_makes_what_its_record_says(point: Point) -> None:
    run, given = built(point)
    made = run(*given)
    told = kernel_of(point).write_bytes.fixed
    size = prod(made.shape) * (4 if point.operation == "compare" else made.dtype.size)
    if point.operation == "pool_gradient":
        size *= 2
    if point.operation in ("scatter",):
        return  # its result is the table; it writes the rows
    assert size == told


def test_a_gradient_is_the_one_of_its_convolution() -> None:
    sizes = {"n": 2, "h": 4, "w": 4, "cin": 3, "cout": 5, "kh": 3, "kw": 3, "stride": 1,
             "groups": 1}  # fmt: skip
    point = Point(operation="convolution", dtype="f32", sizes=sizes, form="weight_gradient")
    run, (image, gradient) = built(point)
    weight = tf.ones((3, 3, 3, 5))
    with tf.GradientTape() as tape:
        tape.watch(weight)
        made = tf.nn.conv2d(image, weight, 1, "SAME")
    wanted = tape.gradient(made, weight, output_gradients=gradient)
    assert tf.reduce_max(tf.abs(run(image, gradient) - wanted)) < 1e-3
