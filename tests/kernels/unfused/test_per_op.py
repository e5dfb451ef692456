from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import pytest
from jax import lax
from jax import numpy as jnp
from tests.runtime.lowered import Argument, graph, library_flops, of_kind, program

from tfdyno.kernels.layers import operation_of
from tfdyno.kernels.unfused.per_op import per_op

if TYPE_CHECKING:
    from tfdyno.core.choose.program import Program
    from tfdyno.kernels.graph import Graph, Node

SIDE, CHANNELS = 32, 16
SAMPLE = SIDE * SIDE * CHANNELS * 4
"""Bytes of an image's feature map."""
IMAGES: Argument = ("input", (37, SIDE, SIDE, CHANNELS))
KERNEL: Argument = ("weight", (3, 3, CHANNELS, CHANNELS))
VECTOR: Argument = ("weight", (CHANNELS,))
layer = jax.named_scope


def moved(made: Program) -> list[tuple[str, str, float, float]]:
    """Kind, layer, bytes read and written for each sample."""
    return [
        (each.kind, each.layer, each.read_bytes.per_sample, each.write_bytes.per_sample)
        for each in made.kernels
    ]


def block(
    x: jax.Array, w: jax.Array, b: jax.Array, scale: jax.Array, shift: jax.Array
) -> jax.Array:
    """Convolution with bias, normalisation at inference, rectifier: three layers of Keras."""
    layout = ("NHWC", "HWIO", "NHWC")
    with layer("conv"):
        y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout) + b
    with layer("norm"):
        y = y * scale + shift
    with layer("act"):
        return jax.nn.relu(y)


def test_what_xla_fuses_goes_through_memory_layer_by_layer() -> None:
    arguments = (IMAGES, KERNEL, VECTOR, VECTOR, VECTOR)
    fused = program(block, *arguments, mode="infer")
    assert moved(fused) == [
        ("convolution", "conv", SAMPLE, SAMPLE),
        ("loop", "act", SAMPLE, SAMPLE),
    ]
    apart = program(block, *arguments, mode="infer", by_operation=True)
    assert moved(apart) == [
        ("convolution", "conv", SAMPLE, SAMPLE),
        ("loop", "conv", SAMPLE, SAMPLE),
        ("loop", "norm", SAMPLE, SAMPLE),
        ("loop", "act", SAMPLE, SAMPLE),
    ]
    assert library_flops(apart) == library_flops(fused)


def test_the_bias_of_a_convolution_is_a_kernel_of_its_own() -> None:
    def biased(x: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
        with layer("conv"):
            y = lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            return y + b

    assert len(program(biased, IMAGES, KERNEL, VECTOR, mode="infer").kernels) == 1
    alone, bias = program(
        biased, IMAGES, KERNEL, VECTOR, mode="infer", by_operation=True
    ).kernels  # fmt: skip
    assert (alone.kind, alone.read_bytes.fixed) == ("convolution", 4 * 9 * CHANNELS**2)
    assert (bias.kind, bias.read_bytes.fixed) == ("loop", 4 * CHANNELS)


@pytest.mark.parametrize(("activation", "kinds"), [(False, ["gemm"]), (True, ["gemm", "loop"])])
def test_a_matrix_product_keeps_its_bias_but_not_the_layers_activation(
    activation: bool, kinds: list[str]
) -> None:
    def dense(x: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
        with layer("dense"):
            y = x @ w + b
            return jax.nn.relu(y) if activation else y

    arguments: list[Argument] = [
        ("input", (37, 64, 512)),
        ("weight", (512, 512)),
        ("weight", (512,)),
    ]
    made = program(dense, *arguments, mode="infer", by_operation=True)
    assert [each.kind for each in made.kernels] == kinds
    assert [each.layer for each in made.kernels] == ["dense"] * len(kinds)
    assert len(program(dense, *arguments, mode="infer").kernels) == 1


def test_what_is_only_spread_over_another_layers_result_is_not_written_out() -> None:
    def gated(x: jax.Array, channels: jax.Array) -> jax.Array:
        with layer("gate"):
            gate = jnp.broadcast_to(jax.nn.sigmoid(channels)[:, None, None, :], x.shape)
        with layer("scale"):
            return x * gate

    small: Argument = ("input", (37, CHANNELS))
    gate, scale = program(gated, IMAGES, small, mode="infer", by_operation=True).kernels
    assert (gate.layer, gate.write_bytes.per_sample) == ("gate", 4 * CHANNELS)
    assert scale.read_bytes.per_sample == SAMPLE + 4 * CHANNELS
    assert len(program(gated, IMAGES, small, mode="infer").kernels) == 1


def test_a_gradient_recomputes_what_its_own_layer_computed() -> None:
    def loss(w: jax.Array, x: jax.Array, v: jax.Array) -> jax.Array:
        with layer("first"):
            y = x @ w
        with layer("wave"):
            z = jnp.sin(y) * y
        with layer("last"):
            return jnp.sum((z @ v) ** 2)

    arguments: list[Argument] = [
        ("weight", (64, 64)), ("input", (37, 1024, 64)), ("weight", (64, 64))
    ]  # fmt: skip
    made = program(jax.grad(loss), *arguments, by_operation=True)
    sample = 1024 * 64 * 4
    wave = [each for each in made.kernels if each.layer == "wave"]
    assert [(k.kind, k.phase, k.read_bytes.per_sample, k.write_bytes.per_sample) for k in wave] == [
        ("loop", "forward", sample, sample),
        # y and the gradient, no sine or cosine kept: it would be a kernel of another layer
        ("loop", "backward", 2 * sample, sample),
    ]


def regions(found: Graph) -> dict[str, set[int]]:
    """Operation of the framework -> its regions."""
    by_operation: dict[str, set[int]] = {}
    for node in found.nodes:
        by_operation.setdefault(operation_of(node.location), set()).add(node.scope)
    return by_operation


def located(found: Graph, part: str) -> list[Node]:
    return [node for node in found.nodes if part in node.location]


def test_both_passes_of_a_layer_share_a_region_and_two_layers_do_not() -> None:
    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        with layer("one"):
            y = jnp.tanh(x * w)
        with layer("two"):
            return jnp.sum(y * y)

    made = per_op(graph(jax.grad(loss), VECTOR, ("input", (37, CHANNELS))))
    forward, backward = located(made, "/jvp(one)/"), located(made, "/transpose(jvp(one))/")
    assert forward
    assert backward
    assert len({node.scope for node in (*forward, *backward)}) == 1
    found = regions(made)
    assert len(found["one"]) == len(found["two"]) == 1
    assert found["one"].isdisjoint(found["two"])


def test_a_loop_stays_apart_from_what_is_around_it() -> None:
    def step(x: jax.Array, w: jax.Array) -> jax.Array:
        with layer("cell"):
            x = x * w
            return lax.fori_loop(0, 3, lambda _, y: jnp.tanh(y * w), x)

    bare = graph(step, ("input", (37, CHANNELS)), VECTOR)
    made = per_op(bare)
    around = {node.scope for node in bare.nodes if "cell" in node.location}
    assert len(around) > 1  # the loop's body has a region already
    assert len(regions(made)["cell"]) == len(around)
    assert {node.scope for node in made.nodes}.isdisjoint(node.scope for node in bare.nodes)
    assert max(node.scope for node in made.nodes) == made.scopes - 1
    assert [node.repeats for node in made.nodes] == [node.repeats for node in bare.nodes]


def test_only_the_regions_differ() -> None:
    bare = graph(block, IMAGES, KERNEL, VECTOR, VECTOR, VECTOR)
    scopes = [node.scope for node in bare.nodes]
    made = per_op(bare)
    assert [node.scope for node in bare.nodes] == scopes
    assert [(n.op, n.operands, n.results) for n in made.nodes] == [
        (n.op, n.operands, n.results) for n in bare.nodes
    ]
    assert made.values == bare.values
    # argument nodes without a layer, the convolution, its bias, the normalisation, the rectifier
    assert len({node.scope for node in made.nodes}) == 5


def test_an_optimizer_step_is_still_one_kernel_a_weight() -> None:
    def update(w: jax.Array, m: jax.Array, g: jax.Array) -> tuple[jax.Array, jax.Array]:
        m = 0.9 * m - 0.1 * g
        return w + m, m

    shape = (1024, 1024)
    arguments: list[Argument] = [("weight", shape), ("optimizer", shape), ("input", shape)]
    (kernel,) = program(update, *arguments, by_operation=True).kernels
    assert (kernel.kind, kernel.phase) == ("loop", "update")
    assert kernel.read_bytes.fixed == 3 * 4 * 1024**2


def test_every_layer_of_a_sum_over_the_batch_reads_its_input_itself() -> None:
    def two(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        with layer("mean"):
            mean = jnp.sum(x, (0, 1, 2))
        with layer("square"):
            return mean, jnp.sum(x * x, (0, 1, 2))

    fused = of_kind(program(two, IMAGES, mode="infer"), "reduce")
    apart = of_kind(program(two, IMAGES, mode="infer", by_operation=True), "reduce")
    assert [each.read_bytes.per_sample for each in fused] == [SAMPLE]
    assert [each.read_bytes.per_sample for each in apart] == [SAMPLE, SAMPLE]
