"""Tensors go from one framework to another by DLPack as docs/how-to/export.md says."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.tf, pytest.mark.slow]
TORCH = os.environ.get("TFDYNO_TORCH_PYTHON", "")
WITH_TENSORFLOW = """
import keras, numpy as np, tensorflow as tf, jax
layer = keras.layers.Dense(3); layer.build((None, 4))
t = tf.convert_to_tensor(layer.kernel.value)
assert np.array_equal(np.from_dlpack(t), layer.kernel.numpy())
assert np.array_equal(np.asarray(jax.dlpack.from_dlpack(t)), layer.kernel.numpy())
a = jax.numpy.arange(6.0).reshape(2, 3)
assert np.array_equal(tf.experimental.dlpack.from_dlpack(a.__dlpack__()).numpy(), np.asarray(a))
"""
WITH_TORCH = """
import numpy as np, torch
a = np.zeros((2, 3), "float32")
t = torch.from_dlpack(a)
a[0, 0] = 9.0
assert float(t[0, 0]) == 9.0  # no copy
assert np.array_equal(np.from_dlpack(torch.ones(2, 3)), np.ones((2, 3)))
"""


def run(python: str, code: str) -> None:
    environment = os.environ | {"KERAS_BACKEND": "tensorflow", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


def test_tensorflow_shares_with_numpy_and_jax() -> None:
    run(sys.executable, WITH_TENSORFLOW)


@pytest.mark.skipif(not TORCH, reason="TFDYNO_TORCH_PYTHON names no interpreter")
def test_pytorch_shares_with_numpy() -> None:
    run(TORCH, WITH_TORCH)
