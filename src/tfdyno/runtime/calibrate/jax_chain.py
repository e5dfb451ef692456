"""Chains of one kernel in JAX, which XLA compiles."""

from __future__ import annotations

import time
from functools import partial
from math import isqrt
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tfdyno.runtime.calibrate.points import BINARY, convolution_shapes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import DType, Tensor, Value
    from tfdyno.runtime.calibrate.points import Point, Sizes

    Built = tuple[Callable[..., Any], tuple[Any, ...]]

NAME = "JAX"
TYPES = {"f32": jnp.float32, "tf32": jnp.float32, "f16": jnp.float16, "bf16": jnp.bfloat16}
TRANSFER_BYTES, TRANSFERS = 1 << 26, 5
HEADS, TABLE = 4, 4096
IMAGES = ("NHWC", "HWIO", "NHWC")
ELEMENTS: dict[str, Callable[..., Any]] = {
    "add": jnp.add, "subtract": jnp.subtract, "multiply": jnp.multiply, "divide": jnp.divide,
    "maximum": jnp.maximum, "sqrt": jnp.sqrt, "square": jnp.square, "exponential": jnp.exp,
    "tanh": jnp.tanh, "logistic": jax.nn.sigmoid, "erfc": jax.scipy.special.erfc,
    "negate": jnp.negative,
}  # fmt: skip
MOVED = frozenset(("transpose", "gather", "scatter"))
"""Operations that compute nothing."""


def prepare() -> None:
    """Set nothing: JAX has no option that holds for all chains."""


def allow_tf32(allowed: bool) -> None:
    """Set whether float32 products of the chains that are traced next may run in TF32."""
    jax.config.update("jax_default_matmul_precision", "default" if allowed else "highest")


def release() -> str:
    """Return the version of JAX."""
    return str(jax.__version__)


def devices() -> list[str]:
    """Return what the GPUs that JAX sees are called."""
    return [one.device_kind for one in jax.devices() if one.platform == "gpu"]


def wait(result: Value) -> None:
    """Wait until the device has done what it was asked for."""
    jax.block_until_ready(result)


def paces(where: str) -> dict[str, float]:
    """Return, on a GPU, bytes per second from the host's memory to the card and back."""
    if where == "cpu":
        return {}
    data = np.ones(TRANSFER_BYTES // 4, np.float32)
    there, back = [], []
    for _ in range(TRANSFERS):
        began_s = time.perf_counter()
        held = jax.block_until_ready(jax.device_put(data))
        there.append(time.perf_counter() - began_s)
        began_s = time.perf_counter()
        np.asarray(held)
        back.append(time.perf_counter() - began_s)
    return {
        "to_card_bytes_per_s": TRANSFER_BYTES / min(there),
        "from_card_bytes_per_s": TRANSFER_BYTES / min(back),
    }


def chain(point: Point | None, count: int, execution: str) -> Callable[[], Any]:
    """Return a call that runs a kernel ``count`` times; None: a call that runs none.

    XLA fuses nothing across a barrier, and all results are asked for, so that it drops none.
    ``execution`` is always ``xla``.
    """
    del execution
    if point is None:
        return partial(jax.jit(lambda x: x + 0.0), jnp.float32(1.0))
    run, given = built(point)

    def body(*arguments: Any) -> list[Any]:
        results = []
        for _ in range(count):
            made = run(*arguments)
            results.append(made)
            *arguments, _ = lax.optimization_barrier((*arguments, made))
        return results

    return partial(jax.jit(body), *given)


def built(point: Point) -> Built:
    """Return what computes the kernel once, and its input; raises ``NotImplementedError``."""
    makers = {"gemm": _product, "convolution": _convolution, "sum": _sum, "softmax": _softmax,
              "pool": _pool}  # fmt: skip
    return makers.get(point.operation, _elements)(point, point.sizes, TYPES[point.dtype])


def _filled(shape: tuple[int, ...], dtype: DType) -> Value:
    return jax.random.uniform(jax.random.key(1), shape, jnp.float32, 0.1, 1.0).astype(dtype)


def _product(point: Point, one: Sizes, dtype: DType) -> Built:
    m, n, k, batch = one["m"], one["n"], one["k"], one.get("batch", 1)
    turned = (point.form == "weight_gradient", point.form == "input_gradient")
    many = (batch,) if batch > 1 else ()
    first, second = ((k, m) if turned[0] else (m, k)), ((n, k) if turned[1] else (k, n))

    def run(a: Tensor, b: Tensor) -> Value:
        a = jnp.swapaxes(a, -1, -2) if turned[0] else a
        return a @ (jnp.swapaxes(b, -1, -2) if turned[1] else b)

    return run, (_filled((*many, *first), dtype), _filled((*many, *second), dtype))


def _convolution(point: Point, one: Sizes, dtype: DType) -> Built:
    image, weight, result = convolution_shapes(one)
    if one["groups"] > 1:
        weight = (*weight[:2], 1, one["cin"])

    def forward(x: Tensor, w: Tensor) -> Value:
        return lax.conv_general_dilated(
            x, w, (one["stride"],) * 2, "SAME", dimension_numbers=IMAGES,
            feature_group_count=one["groups"],
        )  # fmt: skip

    x, w, y = (_filled(shape, dtype) for shape in (image, weight, result))
    if point.form == "forward":
        return forward, (x, w)
    if point.form == "input_gradient":
        return (lambda w, y: jax.linear_transpose(lambda x: forward(x, w), x)(y)[0]), (w, y)
    return (lambda x, y: jax.linear_transpose(lambda w: forward(x, w), w)(y)[0]), (x, y)


def _sum(_: Point, one: Sizes, dtype: DType) -> Built:
    shape = (one["outer"], one["summed"], one["inner"])
    return (lambda x: jnp.sum(x, axis=1)), (_filled(shape, dtype),)


def _softmax(_: Point, one: Sizes, dtype: DType) -> Built:
    return (lambda x: jax.nn.softmax(x, axis=-1)), (_filled((one["outer"], one["summed"]), dtype),)


def _pool(_: Point, one: Sizes, dtype: DType) -> Built:
    x = _filled((one["n"], one["h"], one["w"], one["c"]), dtype)
    window = (1, 2, 2, 1)
    return (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")), (x,)


def _elements(point: Point, one: Sizes, dtype: DType) -> Built:
    name = point.operation
    if name not in {*ELEMENTS, *MOVED}:
        raise NotImplementedError(f"{name} is not swept by JAX")
    count, columns = one["elements"], one.get("columns", 0)
    shape = (count // columns, columns) if columns else ((count,) if count > 1 else ())
    x = _filled(shape, dtype)
    if name == "transpose":
        side = isqrt(count // HEADS)
        heads = _filled((side, HEADS, count // HEADS // side), dtype)
        return (lambda x: jnp.swapaxes(x, 0, 1)), (heads,)
    if name == "gather":
        rows = jax.random.randint(jax.random.key(2), (count // columns,), 0, TABLE)
        return (lambda t, r: t[r]), (_filled((TABLE, columns), dtype), rows)
    if name == "scatter":
        rows = jax.random.randint(jax.random.key(2), (count // columns,), 0, TABLE)
        empty = jnp.zeros((TABLE, columns), dtype)
        return (lambda r, u: empty.at[r].add(u)), (rows, x)
    run = ELEMENTS[name]
    if name in BINARY:
        return run, (x, _filled((columns,) if columns else shape, dtype))
    return run, (x,)
