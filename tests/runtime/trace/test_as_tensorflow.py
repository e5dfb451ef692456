from __future__ import annotations

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.runtime.lowered import program

from tfdyno.runtime.trace.as_tensorflow import relu, relu6

POINTS = (-1.0, 0.0, 2.0, 6.0, 7.0)
KERAS = """
import keras, jax
from tfdyno.runtime.trace.as_tensorflow import as_tensorflow
x = jax.numpy.array([-1.0, 0.0, 2.0, 6.0, 7.0])
layers = (keras.layers.ReLU(), keras.layers.ReLU(6.0), keras.layers.Activation("relu"),
          keras.layers.Activation("relu6"), keras.ops.relu)
with as_tensorflow("before"):
    for layer in layers:
        slopes = jax.grad(lambda x: layer(x).sum())(x).tolist()
        print(*slopes, "custom_jvp" in str(jax.make_jaxpr(layer)(x)))
"""
TODAY = """
import keras, jax
from jax import numpy as jnp
from tfdyno.runtime.trace.as_tensorflow import as_tensorflow
layer = keras.layers.ReversibleEmbedding(8, 4, dtype="mixed_bfloat16")
layer(jnp.zeros((2, 3), "int32"))
x = jnp.arange(12.0).reshape(3, 4)
def variance(x):
    return keras.ops.moments(x, 0)[1].sum()
for lowering in ("before", "tensorflow"):
    with as_tensorflow(lowering):
        logits = layer(jnp.zeros((2, 3, 4), "bfloat16"), reverse=True)
        slope = jax.grad(variance)
        sums = str(jax.make_jaxpr(slope)(x)).count("reduce_sum")
        moments = map(float, keras.ops.moments(x, 0)[1])
        print(logits.dtype, sums, *slope(x)[:, 0].tolist(), *moments)
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


def test_of_today_s_software_a_tied_embedding_and_a_variance_are_tensorflow_s() -> None:
    environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    ran = subprocess.run(
        [sys.executable, "-c", TODAY], capture_output=True, text=True, env=environment, check=True
    )
    before, today = (line.split() for line in ran.stdout.splitlines())
    assert (before[0], today[0]) == ("bfloat16", "float32")
    assert int(today[1]) < int(before[1])  # no sum of what is zero
    # of 0, 4, 8: mean 4, variance 32/3, slopes 2 / 3 * (x - 4)
    slopes, variance = [-8 / 3, 0, 8 / 3], [32 / 3] * 4
    for line in (before, today):
        assert [float(number) for number in line[2:]] == pytest.approx(slopes + variance, abs=1e-5)
