from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import pytest
from tests.runtime.lowered import Step, of_kind

from tfdyno.core.choose.workload import TensorSpec
from tfdyno.kernels.graph import Graph, TensorType
from tfdyno.runtime.trace.quick import program_of
from tfdyno.runtime.trace.stablehlo import read_graph
from tfdyno.runtime.trace.widening import has_bfloat16, widened, wider

if TYPE_CHECKING:
    from tfdyno.core.choose.program import Program

BATCH = 37
WIDTH = 256


def graph(step: Step, *dtypes: str) -> Graph:
    """A step over an input of (37, 256) and a weight of (256, 256)."""
    shapes = ((BATCH, WIDTH), (WIDTH, WIDTH))
    structs = [jax.ShapeDtypeStruct(s, d) for s, d in zip(shapes, dtypes, strict=True)]
    return read_graph(jax.jit(step).trace(*structs).lower().compiler_ir("stablehlo"))


def program(made: Graph) -> Program:
    tensors = tuple(
        TensorSpec(name=role, role=role, shape=(), dtype="", bytes=0)
        for role in ("input", "weight")
    )
    return program_of(
        made, batch_size=BATCH, marker=37, trace_sha256="", tensors=tensors, mode="infer"
    )


def mixed(x: jax.Array, w: jax.Array) -> jax.Array:
    half = jnp.dot(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16))
    return jnp.tanh(half).astype(jnp.float32)


def test_casts_of_a_mixed_policy_are_gone_and_the_product_is_single() -> None:
    narrow = graph(mixed, "float32", "float32")
    wide = widened(narrow)
    assert has_bfloat16(narrow)
    assert not has_bfloat16(wide)
    assert [node.op for node in wide.nodes if node.op == "convert"] == []
    (product,) = of_kind(program(wide), "gemm")
    assert product.dtype == "f32"
    # by hand: 37 x 256 and 256 x 256 are read, 37 x 256 are written, four bytes each
    assert product.read_bytes.at(BATCH) == 4 * (BATCH * WIDTH + WIDTH * WIDTH)
    assert product.write_bytes.at(BATCH) == 4 * BATCH * WIDTH


def test_arguments_and_results_keep_their_type_and_are_cast_once() -> None:
    def pure(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.dot(x, w)

    narrow = graph(pure, "bfloat16", "bfloat16")
    wide = widened(narrow)
    assert [wide.values[v].type.dtype for v in (*wide.arguments, *wide.outputs)] == ["bf16"] * 3
    assert sum(node.op == "convert" for node in wide.nodes) == 3
    (product,) = of_kind(program(wide), "gemm")
    assert product.dtype == "f32"
    narrow_plan, wide_plan = program(narrow).buffers, program(wide).buffers
    assert wide_plan.argument_bytes == narrow_plan.argument_bytes
    assert wide_plan.temporary_bytes.at(BATCH) > narrow_plan.temporary_bytes.at(BATCH)


def test_what_a_loop_feeds_back_is_followed() -> None:
    def loop(x: jax.Array, w: jax.Array) -> jax.Array:
        small = w.astype(jnp.bfloat16)
        return jax.lax.fori_loop(0, 5, lambda _, h: jnp.dot(h, small), x.astype(jnp.bfloat16))

    wide = widened(graph(loop, "float32", "float32"))
    fed = [node.attributes["feedback"] for node in wide.nodes if "feedback" in node.attributes]
    assert fed
    for state in (node for node in wide.nodes if node.op == "loop_state"):
        back = wide.values[state.attributes["feedback"]].type
        assert back == wide.values[state.results[0]].type
    (product,) = of_kind(program(wide), "gemm")
    assert (product.dtype, product.repeats) == ("f32", 5)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (TensorType((4,), "bf16", 16), TensorType((4,), "f32", 32)),
        (TensorType((4,), "bf16", 16 + 64), TensorType((4,), "f32", 32 + 64)),  # with indices
        (TensorType((4,), "f16", 16), TensorType((4,), "f16", 16)),
    ],
)
def test_only_bfloat16_grows(kind: TensorType, expected: TensorType) -> None:
    assert wider(kind) == expected


def test_a_step_in_single_precision_has_nothing_to_widen() -> None:
    assert not has_bfloat16(graph(jnp.dot, "float32", "float32"))
