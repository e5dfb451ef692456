"""A dilated convolution keeps its image rearranged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import pytest
from jax import lax
from jax import numpy as jnp
from tests.runtime.lowered import graph as graph_of
from tests.runtime.lowered import memory_of

from tfdyno.kernels.unfused.tensorflow_dilation import rearrange_dilated
from tfdyno.kernels.unfused.tensorflow_ops import Operations, operations_of

if TYPE_CHECKING:
    from tests.runtime.lowered import Argument

IMAGE: Argument = ("input", (2, 8, 8, 16))
KERNEL: Argument = ("weight", (3, 3, 16, 32))


def convolution(x: jax.Array, w: jax.Array, dilation: int = 4, padding: str = "SAME") -> jax.Array:
    return lax.conv_general_dilated(
        x,
        w,
        (1, 1),
        padding,
        rhs_dilation=(dilation, dilation),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def kernels(dilation: int, padding: str = "SAME") -> Operations:
    def step(x: jax.Array, w: jax.Array) -> jax.Array:
        return convolution(x, w, dilation, padding)

    made = operations_of(graph_of(step, IMAGE, KERNEL))
    rearrange_dilated(made)
    return made


def test_the_phases_move_into_the_batch() -> None:
    made = kernels(4)
    assert [e.kind for e in made.items] == ["space_to_batch", "convolution", "batch_to_space"]
    kinds = [made.type_of(each.writes[0]) for each in made.items]
    # 8 + 4·2 padded = 16 = 4 phases of 4; the window of 3 leaves 2 of them
    assert [kind.shape for kind in kinds if kind] == [
        (2 * 16, 4, 4, 16),
        (2 * 16, 2, 2, 32),
        (2, 8, 8, 32),
    ]


def test_without_padding_the_image_is_only_filled_up() -> None:
    kind = kernels(3, "VALID").type_of(kernels(3, "VALID").items[0].writes[0])
    assert kind is not None
    assert kind.shape == (2 * 9, 3, 3, 16)  # 8 filled up to 9


def test_a_plain_convolution_stays_as_it_is() -> None:
    assert [each.kind for each in kernels(1).items] == ["convolution"]


def test_the_rearranged_image_is_what_the_filters_gradient_reads() -> None:
    def step(x: jax.Array, w: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        def loss(x: jax.Array, w: jax.Array) -> jax.Array:
            with jax.named_scope("layer"):
                return jnp.sum(jnp.tanh(convolution(jnp.tanh(x), w)))

        return jax.value_and_grad(loss, argnums=(0, 1))(x, w)

    memory = memory_of(step, IMAGE, KERNEL)
    rearranged = next(e for e in memory.schedule if e.kind == "space_to_batch").writes[0]
    backward = memory.operations.backward
    readers = [each.kind for each in memory.schedule if rearranged in each.reads]
    assert readers == ["convolution", "convolution"]
    stay = next(stay for stay in memory.stays if stay.buffer == rearranged)
    assert backward[memory.schedule[stay.end].node]
    moved_back = [each for each in memory.schedule if each.kind == "batch_to_space"]
    kinds = [memory.operations.type_of(each.reads[0]) for each in moved_back]
    assert [kind.shape for kind in kinds if kind] == [(32, 2, 2, 32), (32, 4, 4, 16)]


@pytest.mark.parametrize("dilation", [2, 4])
def test_it_needs_more_than_the_image(dilation: int) -> None:
    made = kernels(dilation)
    assert made.bytes(made.items[0].writes[0]) > 2 * 8 * 8 * 16 * 4
