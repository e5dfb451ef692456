from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import pytest
from jax import numpy as jnp
from tests.runtime.lowered import Argument, of_kind, program

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, CHANNELS = 256, 64
X: Argument = ("input", (37, ROWS, CHANNELS))


@pytest.mark.parametrize(
    ("step", "inner"),
    [
        (lambda x: jax.nn.softmax(x, -1), 1),  # along rows: neighbours in memory are added
        (lambda x: jnp.sum(x, 2), 1),
        (jnp.sum, 1),
        (lambda x: jnp.sum(x, (0, 1)), CHANNELS),  # statistics of a batch, channel by channel
        (lambda x: jnp.sum(x, 1), CHANNELS),
        (lambda x: jnp.sum(x, 0), ROWS * CHANNELS),
    ],
    ids=["softmax", "rows", "everything", "channels", "middle", "batch"],
)
def test_a_reduction_knows_how_far_apart_lies_what_it_adds(
    step: Callable[[jax.Array], jax.Array], inner: int
) -> None:
    found = of_kind(program(step, X, mode="infer"), "reduce")
    assert {kernel.dims["inner"] for kernel in found} == {(inner,)}


def test_of_several_reductions_in_one_launch_the_widest_apart_counts() -> None:
    def step(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.sum(x, (0, 1)), jnp.sum(x * x, (0, 1, 2))

    (kernel,) = of_kind(program(step, X, mode="infer"), "reduce")
    assert kernel.dims == {"inner": (CHANNELS,)}


def test_nothing_but_a_reduction_has_an_inner_size() -> None:
    made = program(lambda x: jnp.tanh(x) * 2, X, mode="infer")
    assert [kernel.dims for kernel in made.kernels] == [{}]
