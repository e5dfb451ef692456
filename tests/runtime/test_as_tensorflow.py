from __future__ import annotations

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.runtime.lowered import program

from tfdyno.runtime.as_tensorflow import relu, relu6

POINTS = (-1.0, 0.0, 2.0, 6.0, 7.0)
KERAS = """
import keras, jax
from tfdyno.runtime.as_tensorflow import as_tensorflow, relu
as_tensorflow("before")
x = jax.numpy.array([-1.0, 0.0, 2.0, 6.0, 7.0])
for layer in (keras.layers.ReLU(), keras.layers.ReLU(6.0), keras.layers.Activation("relu"),
              keras.layers.Activation("relu6"), keras.ops.relu):
    slopes = jax.grad(lambda x: layer(x).sum())(x).tolist()
    print(*slopes, "custom_jvp" in str(jax.make_jaxpr(layer)(x)))
"""


@pytest.mark.parametrize(
    ("function", "values", "slopes"),
    [
        (relu, (0.0, 0.0, 2.0, 6.0, 7.0), (0.0, 0.0, 1.0, 1.0, 1.0)),
        # TensorFlow's Relu6Grad: 1 where 0 < result < 6
        (relu6, (0.0, 0.0, 2.0, 6.0, 6.0), (0.0, 0.0, 1.0, 0.0, 0.0)),
    ],
)
def test_values_and_slopes_are_those_of_tensorflow(
    function: jax.custom_jvp[jax.Array], values: tuple[float, ...], slopes: tuple[float, ...]
) -> None:
    x = jnp.array(POINTS)
    assert tuple(function(x).tolist()) == values
    assert tuple(jax.grad(lambda x: function(x).sum())(x).tolist()) == slopes
    assert function(x.astype(jnp.float16)).dtype == np.float16


def test_a_step_keeps_what_comes_out_and_not_what_goes_in() -> None:
    def layers(activation: object) -> object:
        def step(weight: jax.Array, x: jax.Array) -> jax.Array:
            def loss(weight: jax.Array) -> jax.Array:
                result = x
                for _ in range(4):
                    result = activation(result @ weight)  # type: ignore[operator]
                return result.sum()

            return jax.grad(loss)(weight)

        return step

    arguments = (("weight", (64, 64)), ("input", (37, 64, 64)))
    kept = {
        name: program(layers(function), *arguments).buffers.peak_at(37)  # type: ignore[arg-type]
        for name, function in (("result", relu), ("input", jax.nn.relu))
    }
    assert kept["input"] - kept["result"] >= 2 * 37 * 64 * 64 * 4


def test_keras_uses_them_wherever_a_model_says_relu() -> None:
    environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    ran = subprocess.run(
        [sys.executable, "-c", KERAS], capture_output=True, text=True, env=environment, check=True
    )
    full, six = "0.0 0.0 1.0 1.0 1.0 True", "0.0 0.0 1.0 0.0 0.0 True"
    assert ran.stdout.split("\n")[:5] == [full, six, full, six, full]
