"""The kernels of a sweep as TensorFlow's own operations."""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.runtime.calibrate.points import BINARY, convolution_shapes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import DType, Tensor, Value
    from tfdyno.runtime.calibrate.points import Point, Sizes

    Built = tuple[Callable[..., Any], tuple[Any, ...]]

TYPES = {"f32": tf.float32, "tf32": tf.float32, "f16": tf.float16, "bf16": tf.bfloat16}
HEADS = 4
RAW: dict[str, Callable[..., Any]] = {
    "add": tf.raw_ops.AddV2,
    "subtract": tf.raw_ops.Sub,
    "multiply": tf.raw_ops.Mul,
    "divide": tf.raw_ops.RealDiv,
    "sqrt": tf.raw_ops.Sqrt,
    "square": tf.raw_ops.Square,
    "exponential": tf.raw_ops.Exp,
    "tanh": tf.raw_ops.Tanh,
    "logistic": tf.raw_ops.Sigmoid,
    "erfc": tf.raw_ops.Erfc,
    "negate": tf.raw_ops.Neg,
}


def built(point: Point) -> Built:
    """Return what computes the kernel once, and what it is given."""
    makers = {
        "gemm": _product, "convolution": _convolution, "sum": _sum, "softmax": _softmax,
        "loss": _loss, "pool": _pool, "pool_gradient": _pool_gradient,
    }  # fmt: skip
    return makers.get(point.operation, _elements)(point, point.sizes, TYPES[point.dtype])


def _filled(shape: tuple[int, ...], dtype: DType) -> Value:
    return tf.cast(tf.random.stateless_uniform(shape, (1, 2), 0.1, 1.0), dtype)


def _product(point: Point, one: Sizes, dtype: DType) -> Built:
    m, n, k, batch = one["m"], one["n"], one["k"], one.get("batch", 1)
    turned = (point.form == "weight_gradient", point.form == "input_gradient")
    first, second = ((k, m) if turned[0] else (m, k)), ((n, k) if turned[1] else (k, n))
    if batch == 1:
        return (
            lambda a, b: tf.raw_ops.MatMul(a=a, b=b, transpose_a=turned[0], transpose_b=turned[1])
        ), (_filled(first, dtype), _filled(second, dtype))
    return (lambda a, b: tf.raw_ops.BatchMatMulV2(x=a, y=b, adj_x=turned[0], adj_y=turned[1])), (
        _filled((batch, *first), dtype), _filled((batch, *second), dtype),
    )  # fmt: skip


def _convolution(point: Point, one: Sizes, dtype: DType) -> Built:
    image, weight, result = convolution_shapes(one)
    how = {"strides": [1, one["stride"], one["stride"], 1], "padding": "SAME"}
    depthwise = one["groups"] > 1
    if point.form == "forward":
        run = tf.raw_ops.DepthwiseConv2dNative if depthwise else tf.raw_ops.Conv2D
        return (lambda x, w: run(input=x, filter=w, **how)), (
            _filled(image, dtype), _filled(weight, dtype),
        )  # fmt: skip
    if point.form == "input_gradient":
        run = (
            tf.raw_ops.DepthwiseConv2dNativeBackpropInput
            if depthwise
            else tf.raw_ops.Conv2DBackpropInput
        )
        return (lambda w, y: run(input_sizes=image, filter=w, out_backprop=y, **how)), (
            _filled(weight, dtype), _filled(result, dtype),
        )  # fmt: skip
    run = (
        tf.raw_ops.DepthwiseConv2dNativeBackpropFilter
        if depthwise
        else tf.raw_ops.Conv2DBackpropFilter
    )
    return (lambda x, y: run(input=x, filter_sizes=weight, out_backprop=y, **how)), (
        _filled(image, dtype), _filled(result, dtype),
    )  # fmt: skip


def _sum(_: Point, one: Sizes, dtype: DType) -> Built:
    shape = (one["outer"], one["summed"], one["inner"])
    return (lambda x: tf.raw_ops.Sum(input=x, axis=[1])), (_filled(shape, dtype),)


def _softmax(_: Point, one: Sizes, dtype: DType) -> Built:
    return (lambda x: tf.raw_ops.Softmax(logits=x)), (
        _filled((one["outer"], one["summed"]), dtype),
    )


def _loss(_: Point, one: Sizes, dtype: DType) -> Built:
    def run(x: Tensor, labels: Tensor) -> Value:
        return tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=labels)[1]

    return run, (_filled((one["outer"], one["summed"]), dtype), tf.zeros(one["outer"], tf.int32))


_WINDOW = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}


def _pool(_: Point, one: Sizes, dtype: DType) -> Built:
    image = (one["n"], one["h"], one["w"], one["c"])
    return (lambda x: tf.raw_ops.MaxPool(input=x, **_WINDOW)), (_filled(image, dtype),)


def _pool_gradient(_: Point, one: Sizes, dtype: DType) -> Built:
    x = _filled((one["n"], one["h"], one["w"], one["c"]), dtype)
    y = tf.raw_ops.MaxPool(input=x, **_WINDOW)

    def run(x: Tensor, g: Tensor) -> Value:
        # oneDNN's gradient needs what its forward pass notes beside the result.
        y = tf.raw_ops.MaxPool(input=x, **_WINDOW)
        return tf.raw_ops.MaxPoolGrad(orig_input=x, orig_output=y, grad=g, **_WINDOW)

    return run, (x, y)


def _elements(point: Point, one: Sizes, dtype: DType) -> Built:
    count, columns = one["elements"], one.get("columns", 0)
    shape = (count // columns, columns) if columns else ((count,) if count > 1 else ())
    x = _filled(shape, dtype)
    other = _filled((columns,) if columns else shape, dtype)
    name = point.operation
    special: dict[str, Built] = {
        "maximum": (lambda x: tf.raw_ops.Relu(features=x), (x,)),
        "select": (lambda x, y: tf.raw_ops.ReluGrad(gradients=x, features=y), (x, other)),
        "power": (lambda x: tf.raw_ops.Pow(x=x, y=tf.constant(2.5, dtype)), (x,)),
        "convert": (lambda x: tf.raw_ops.Cast(x=x, DstT=tf.int32), (x,)),
        "compare": (lambda x: tf.raw_ops.Greater(x=x, y=tf.constant(0.5, dtype)), (x,)),
        "copy": (lambda x: tf.raw_ops.DeepCopy(x=x), (x,)),
        "random": (lambda: tf.random.stateless_uniform(shape, (1, 2)), ()),
    }
    if name in special:
        return special[name]
    if name == "tile":
        one_row = _filled((1, columns), dtype)
        return (lambda x: tf.raw_ops.Tile(input=x, multiples=[count // columns, 1])), (one_row,)
    if name == "transpose":
        side = isqrt(count // HEADS)
        heads = _filled((side, HEADS, count // HEADS // side), dtype)
        return (lambda x: tf.raw_ops.Transpose(x=x, perm=[1, 0, 2])), (heads,)
    if name in ("gather", "scatter"):
        rows = tf.random.stateless_uniform((count // columns,), (1, 2), 0, 4096, tf.int32)
        table = _filled((4096, columns), dtype)
        if name == "gather":
            return (lambda t, r: tf.raw_ops.GatherV2(params=t, indices=r, axis=0)), (table, rows)
        return (
            lambda r, u: tf.raw_ops.UnsortedSegmentSum(data=u, segment_ids=r, num_segments=4096)
        ), (rows, x)
    if name == "square" and columns:
        return (lambda x, y: tf.raw_ops.SquaredDifference(x=x, y=y)), (x, other)
    run = RAW[name]
    if name in BINARY:
        return (lambda x, y: run(x=x, y=y)), (x, other)
    return (lambda x: run(x=x)), (x,)
