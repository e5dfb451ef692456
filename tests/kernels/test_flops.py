from __future__ import annotations

import jax
import pytest
from jax import lax
from jax import numpy as jnp
from tests.runtime.lowered import Step, library_flops, of_kind, program

DIRECTIONS = ("forward", "weight_gradient", "input_gradient")


def convolution(
    stride: tuple[int, ...], padding: str = "SAME", groups: int = 1, dilation: int = 1
) -> Step:
    spatial = "HWD"[: len(stride)]
    labels = (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")

    def loss(x: jax.Array, w: jax.Array) -> jax.Array:
        y = lax.conv_general_dilated(
            x,
            w,
            stride,
            padding,
            rhs_dilation=(dilation,) * len(stride),
            dimension_numbers=labels,
            feature_group_count=groups,
        )
        return jnp.sum(y * y)

    return jax.value_and_grad(loss, argnums=(0, 1))


@pytest.mark.parametrize(
    ("x", "w", "stride", "groups", "forward"),
    [
        # 2 x batch x output positions x window x input channels per group x output channels
        ((37, 56, 56, 16), (3, 3, 16, 32), (1, 1), 1, 2 * 37 * 56**2 * 9 * 16 * 32),
        ((37, 56, 56, 16), (3, 3, 16, 32), (2, 2), 1, 2 * 37 * 28**2 * 9 * 16 * 32),
        ((37, 57, 57, 16), (1, 1, 16, 32), (2, 2), 1, 2 * 37 * 29**2 * 16 * 32),
        ((37, 56, 56, 16), (3, 3, 4, 32), (1, 1), 4, 2 * 37 * 56**2 * 9 * 4 * 32),
        ((37, 56, 56, 16), (3, 3, 4, 32), (2, 2), 4, 2 * 37 * 28**2 * 9 * 4 * 32),
        ((37, 56, 56, 16), (3, 3, 1, 16), (1, 1), 16, 2 * 37 * 56**2 * 9 * 16),
        ((37, 56, 56, 16), (3, 3, 1, 16), (2, 2), 16, 2 * 37 * 28**2 * 9 * 16),
        ((37, 100, 8), (5, 8, 24), (1,), 1, 2 * 37 * 100 * 5 * 8 * 24),
        ((37, 16, 16, 16, 4), (3, 3, 3, 4, 8), (2, 2, 2), 1, 2 * 37 * 8**3 * 27 * 4 * 8),
    ],
    ids=[
        "plain", "strided", "odd strided 1x1", "grouped", "grouped strided", "depthwise",
        "depthwise strided", "1-D", "3-D strided",
    ],
)  # fmt: skip
def test_all_three_passes_of_a_convolution_cost_its_forward_flops(
    x: tuple[int, ...],
    w: tuple[int, ...],
    stride: tuple[int, ...],
    groups: int,
    forward: int,
) -> None:
    made = program(convolution(stride, groups=groups), ("input", x), ("weight", w))
    found = {kernel.direction: kernel for kernel in of_kind(made, "convolution")}
    assert sorted(found) == sorted(DIRECTIONS)
    for kernel in found.values():
        assert kernel.flops.per_sample * 37 == pytest.approx(forward)
        assert kernel.flops.fixed == 0


@pytest.mark.parametrize("groups", [1, 4, 16])
def test_all_three_passes_report_the_forward_geometry(groups: int) -> None:
    made = program(
        convolution((2, 2), groups=groups),
        ("input", (37, 56, 56, 16)),
        ("weight", (3, 3, 16 // groups, 32)),
    )
    for kernel in of_kind(made, "convolution"):
        assert kernel.dims == {
            "n": (37,), "cin": (16,), "cout": (32,), "groups": (groups,),
            "window": (3, 3), "stride": (2, 2), "input": (56, 56), "output": (28, 28),
        }, kernel.direction  # fmt: skip
        assert kernel.dims_scaled == ("n",)


def test_a_dilated_convolution_costs_no_more_than_a_dense_one() -> None:
    made = program(
        convolution((1, 1), dilation=2), ("input", (37, 32, 32, 8)), ("weight", (3, 3, 8, 8))
    )
    assert library_flops(made) == pytest.approx(3 * 2 * 37 * 32**2 * 9 * 8 * 8)


def test_zeros_that_a_transposed_convolution_inserts_cost_nothing() -> None:
    def loss(x: jax.Array, w: jax.Array) -> jax.Array:
        y = lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jnp.sum(y * y)

    made = program(
        jax.value_and_grad(loss, argnums=(0, 1)),
        ("input", (37, 16, 16, 8)),
        ("weight", (4, 4, 8, 24)),
    )
    each = 2 * 37 * 16**2 * 16 * 8 * 24  # every input position meets the whole window once
    assert library_flops(made) == pytest.approx(3 * each)
    by_direction = {kernel.direction: kernel.dims for kernel in of_kind(made, "convolution")}
    # as the library sees it: the transposed convolution is the input gradient of one from 24 to 8
    assert set(by_direction) == set(DIRECTIONS)
    for dims in by_direction.values():
        assert (dims["cin"], dims["cout"], dims["input"], dims["output"]) == (
            (24,),
            (8,),
            (32, 32),
            (16, 16),
        )


def test_a_matrix_product_knows_its_sizes_and_which_grow() -> None:
    made = program(
        lambda x, w: x @ w, ("input", (37, 128, 64)), ("weight", (64, 256)), mode="infer"
    )
    (kernel,) = of_kind(made, "gemm")
    assert kernel.dims == {"m": (37 * 128,), "n": (256,), "k": (64,), "batch": (1,)}
    assert kernel.dims_scaled == ("m",)
    assert kernel.flops.per_sample == 2 * 128 * 256 * 64


def test_attention_scores_are_a_batch_of_products() -> None:
    made = program(
        lambda q, k: jnp.einsum("bthd,bshd->bhts", q, k),
        ("input", (37, 128, 12, 64)),
        ("input", (37, 128, 12, 64)),
        mode="infer",
    )
    (kernel,) = of_kind(made, "gemm")
    assert kernel.dims == {"m": (128,), "n": (128,), "k": (64,), "batch": (37 * 12,)}
    assert kernel.flops.per_sample == 2 * 12 * 128 * 128 * 64


def test_the_operands_type_decides_the_unit() -> None:
    made = program(
        lambda x, w: jnp.dot(x, w, preferred_element_type=jnp.float32),
        ("input", (37, 64), "bfloat16"),
        ("weight", (64, 64), "bfloat16"),
        mode="infer",
    )
    assert [kernel.dtype for kernel in of_kind(made, "gemm")] == ["bf16"]


@pytest.mark.parametrize(("how", "share"), [("", 1.0), (".causal", 0.5)])
def test_fused_attention_multiplies_each_pair_twice_and_five_times_backward(
    how: str, share: float
) -> None:
    batch, queries, keys, heads, shared, width = 37, 128, 256, 8, 2, 64

    def step(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        kept = jax.ShapeDtypeStruct((batch, heads, queries), jnp.float32)
        out = jax.ShapeDtypeStruct(q.shape, q.dtype)
        done, stats = jax.ffi.ffi_call(f"tfdyno.attention.forward{how}", (out, kept))(q, k, v)
        (back,) = jax.ffi.ffi_call(f"tfdyno.attention.backward{how}", (out,))(q, k, v, done, stats)
        return back

    few = (batch, keys, shared, width)
    made = program(step, ("input", (batch, queries, heads, width)), ("input", few), ("input", few))
    forward, backward = of_kind(made, "attention")
    pairs = share * batch * heads * queries * keys
    assert forward.flops.at(batch) == 2 * 2 * pairs * width
    assert backward.flops.at(batch) == 2 * 5 * pairs * width
    assert forward.dims["key_heads"] == (shared,)
    assert forward.dims_scaled == ("batch",)
    # Queries, keys and values are read, results and what is kept of each query are written.
    one = batch * queries * heads * width * 4
    assert forward.read_bytes.at(batch) == one + 2 * batch * keys * shared * width * 4
    assert forward.write_bytes.at(batch) == one + batch * heads * queries * 4
