"""A step traced by JAX becomes the kernels of today's software, or of that before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import pytest
from jax import numpy as jnp
from tests.runtime.lowered import Argument, of_kind, program

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Tensor, Value
    from tfdyno.core.choose.program import Lowering, Program

BATCH, ROWS, WIDTH = 37, 64, 512
X: Argument = ("input", (BATCH * ROWS, WIDTH), "float16")
WEIGHTS: tuple[Argument, ...] = (
    ("weight", (WIDTH, WIDTH), "float16"),
    ("weight", (WIDTH, WIDTH), "float16"),
)
UNIT = BATCH * ROWS * WIDTH * 2
TODAY: tuple[Lowering, ...] = ("jax", "tensorflow")


def two_layers(activation: Tensor) -> Value:
    def step(x: jax.Array, first: jax.Array, second: jax.Array) -> Value:
        def loss(first: jax.Array, second: jax.Array) -> jax.Array:
            return ((activation(x @ first) @ second).astype("float32") ** 2).sum()

        return jax.grad(loss, (0, 1))(first, second)

    return step


def as_type(dtype: str) -> tuple[Argument, ...]:
    return tuple((role, shape, dtype) for role, shape, _ in (X, *WEIGHTS))  # type: ignore[misc]


def units(made: Program, phase: str, unit: int = UNIT) -> list[tuple[float, float]]:
    """Tensors of one activation that large kernels read and write, matrix products left out."""
    found = []
    for kernel in made.kernels:
        read, written = kernel.read_bytes.at(BATCH) / unit, kernel.write_bytes.at(BATCH) / unit
        if kernel.kind != "gemm" and kernel.phase == phase and read + written > 1.5:
            found.append((round(read, 1), round(written, 1)))
    return found


# What XLA 0.6 compiles these for, on an H200: silu of float16 keeps its exponential, that of
# float32 does not; both keep tanh.
@pytest.mark.parametrize(
    ("activation", "dtype", "kept"),
    [
        (jax.nn.silu, "float16", True),
        (jax.nn.silu, "float32", False),
        (jax.nn.silu, "bfloat16", False),
        (jax.nn.elu, "bfloat16", True),
        (jax.nn.gelu, "float32", True),  # by tanh
        (jax.nn.gelu, "bfloat16", True),
    ],
)
@pytest.mark.parametrize("lowering", TODAY)
def test_an_expensive_function_that_two_kernels_read_is_kept(
    activation: Tensor,
    dtype: str,
    kept: bool,
    lowering: Lowering,
) -> None:
    made = program(two_layers(activation), *as_type(dtype), lowering=lowering)
    unit = UNIT * (2 if dtype == "float32" else 1)
    assert units(made, "forward", unit)[0] == (1.0, 2.0 if kept else 1.0)
    assert units(made, "backward", unit)[-1] == (3.0 if kept else 2.0, 1.0)


def test_software_before_computes_all_again() -> None:
    made = program(two_layers(jax.nn.silu), X, *WEIGHTS)
    assert units(made, "forward")[0] == (1.0, 1.0)
    assert units(made, "backward")[-1] == (2.0, 1.0)


def dropout(x: jax.Array, weight: jax.Array, seed: jax.Array) -> Value:
    def loss(weight: jax.Array) -> jax.Array:
        kept = jax.random.bernoulli(jax.random.wrap_key_data(seed), 0.9, x.shape)
        return ((jnp.where(kept, x @ weight, 0) @ weight) ** 2).sum()

    return jax.grad(loss)(weight)


DROPOUT: tuple[Argument, ...] = (
    ("input", (BATCH * ROWS, WIDTH)),
    ("weight", (WIDTH, WIDTH)),
    ("state", (2,), "uint32"),
)
ELEMENTS = BATCH * ROWS * WIDTH


def test_dropout_of_tensorflow_writes_its_random_bits_and_then_a_mask() -> None:
    made = program(dropout, *DROPOUT, lowering="tensorflow")
    (bits,) = of_kind(made, "random")
    assert bits.write_bytes.at(BATCH) == 4 * ELEMENTS
    assert bits.flops.at(BATCH) == pytest.approx(12 * ELEMENTS, rel=0.01)
    (mask,) = (kernel for kernel in made.kernels if kernel.dtype == "pred")
    assert mask.read_bytes.at(BATCH) == pytest.approx(4 * ELEMENTS, rel=0.01)
    assert mask.write_bytes.at(BATCH) == ELEMENTS
    readers = [k for k in of_kind(made, "loop") if k.read_bytes.at(BATCH) >= 5 * ELEMENTS]
    assert [kernel.phase for kernel in readers] == ["forward", "backward"]


@pytest.mark.parametrize("lowering", ["before", "jax"])
def test_dropout_of_jax_computes_its_bits_where_the_mask_is_made(lowering: Lowering) -> None:
    made = program(dropout, *DROPOUT, lowering=lowering)
    assert of_kind(made, "random") == []
    (mask,) = (kernel for kernel in made.kernels if kernel.dtype == "pred")
    assert mask.read_bytes.at(BATCH) < 0.01 * ELEMENTS


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> Value:
    def loss(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        scores = jax.nn.softmax(jnp.einsum("bmd,bnd->bmn", q, k))
        return (jnp.einsum("bmn,bnd->bmd", scores, v).astype("float32") ** 2).sum()

    return jax.grad(loss, (0, 1, 2))(q, k, v)


def rows(length: int) -> list[tuple[float, float]]:
    argument: Argument = ("input", (BATCH, length, 64), "bfloat16")
    made = program(attention, ("input", (BATCH, 64, 64), "bfloat16"), argument, argument,
                   lowering="jax")  # fmt: skip
    unit = BATCH * 64 * length * 2
    return [
        (round(k.read_bytes.at(BATCH) / unit, 1), round(k.write_bytes.at(BATCH) / unit, 1))
        for k in made.kernels
        if k.kind != "gemm" and k.read_bytes.at(BATCH) > 0.9 * unit
    ]


def test_softmax_of_short_rows_is_one_kernel_each_way() -> None:
    assert rows(1024) == [(1.0, 1.0), (2.0, 1.0)]


def test_softmax_of_long_rows_is_three_kernels_forward_and_two_backward() -> None:
    assert rows(32768) == [(1.0, 0.0), (1.0, 0.0), (1.0, 1.0), (2.0, 0.0), (2.0, 1.0)]


def heads(x: jax.Array, key: jax.Array, query: jax.Array) -> jax.Array:
    split = [jnp.einsum("abc,cde->abde", x, weight) for weight in (key, query)]
    return jnp.einsum("aecd,abcd->acbe", *split)


HEADS: tuple[Argument, ...] = (
    ("input", (BATCH, 128, 256), "float16"),
    ("weight", (256, 4, 64), "float16"),
    ("weight", (256, 4, 64), "float16"),
)


def test_what_a_product_of_batches_reads_is_written_in_its_order_first() -> None:
    made = program(heads, *HEADS, mode="infer", lowering="tensorflow")
    size = BATCH * 128 * 256 * 2
    copies = of_kind(made, "transpose")
    assert [k.read_bytes.at(BATCH) for k in copies] == pytest.approx([size, size])
    assert [k.write_bytes.at(BATCH) for k in copies] == pytest.approx([size, size])
    assert of_kind(program(heads, *HEADS, mode="infer"), "transpose") == []


def test_matrices_of_a_batch_in_16_bits_are_filled_up_to_multiples_of_eight() -> None:
    def dims(dtype: str, lowering: Lowering) -> list[tuple[int, ...]]:
        arguments: list[Argument] = [("input", (BATCH, 197, 64), dtype)] * 2
        made = program(lambda q, k: jnp.einsum("bmd,bnd->bmn", q, k), *arguments, mode="infer",
                       lowering=lowering)  # fmt: skip
        (product,) = of_kind(made, "gemm")
        return [product.dims[name] for name in "mnk"]

    assert dims("float16", "tensorflow") == [(200,), (200,), (64,)]
    assert dims("float16", "before") == [(197,), (197,), (64,)]
    assert dims("float32", "tensorflow") == [(197,), (197,), (64,)]


def test_an_einsum_s_gradient_is_a_product_for_every_sample_under_tensorflow() -> None:
    def step(x: jax.Array, weight: jax.Array) -> jax.Array:
        return jax.grad(lambda w: (jnp.einsum("abc,cde->abde", x, w) ** 2).sum())(weight)

    def gradient(lowering: Lowering) -> dict[str, tuple[int, ...]]:
        return of_kind(program(step, *HEADS[:2], lowering=lowering), "gemm")[-1].dims

    assert gradient("jax")["batch"] == (1,)
    assert gradient("jax")["k"] == (BATCH * 128,)
    assert gradient("tensorflow")["batch"] == (BATCH,)
    assert gradient("tensorflow")["k"] == (128,)


def test_a_long_sum_is_added_up_in_two_kernels() -> None:
    # 37 * 1024 = 37,888 terms: 128 parts, the power of 2 below the square root 194.6
    made = program(lambda x: x.sum((0, 1)), ("input", (37, 1024, 512)), mode="infer",
                   lowering="jax")  # fmt: skip
    first, second = of_kind(made, "reduce")
    assert first.write_bytes.at(37) == second.read_bytes.at(37) == 128 * 512 * 4
    assert second.write_bytes.at(37) == 512 * 4


def test_a_gradient_that_is_added_up_and_read_on_is_a_kernel_of_its_own() -> None:
    def step(x: jax.Array, weight: jax.Array, other: jax.Array) -> Value:
        gradient = jnp.where(x > 0, x @ weight, 0).astype("float32")
        sums = gradient.sum(0), (gradient * other).sum(0)
        return (gradient - sums[0] - other * sums[1]).astype("float16") @ weight

    arguments = (X, ("weight", (WIDTH, WIDTH), "float16"), ("input", X[1]))
    today = program(step, *arguments, mode="infer", lowering="jax")
    kinds = [k.kind for k in today.kernels if k.read_bytes.at(BATCH) > UNIT and k.kind != "gemm"]
    assert kinds == ["loop", "reduce", "loop"]
    before = program(step, *arguments, mode="infer")
    kinds = [k.kind for k in before.kernels if k.read_bytes.at(BATCH) > UNIT and k.kind != "gemm"]
    assert kinds == ["reduce", "loop"]


def test_an_axis_of_one_element_is_summed_by_no_kernel() -> None:
    argument: Argument = ("input", (37, 1, 4096))
    made = program(lambda x: x.sum(1) * 2, argument, mode="infer", lowering="jax")
    assert [kernel.kind for kernel in made.kernels] == ["loop"]
