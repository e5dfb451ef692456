"""Variables without memory: quantizing makes the same model and computes none of its values."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from typing import Any

import pytest

CODE = """
import json, os
os.environ |= {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
import keras, numpy as np
from keras import initializers, layers as L
from tfdyno.runtime.workload.weightless import weightless

class Counted(initializers.Initializer):
    made = 0
    def __call__(self, shape, dtype=None, **_):
        import jax
        if not isinstance(jax.numpy.zeros(()), jax.core.Tracer):
            Counted.made += 1
        return keras.ops.zeros(shape, dtype)

class Block(L.Layer):
    def __init__(self):
        super().__init__()
        self.attention = L.MultiHeadAttention(2, 8, kernel_initializer=Counted())
        self.wide = L.Dense(32, "gelu", kernel_initializer=Counted())
        self.narrow = L.Dense(16, kernel_initializer=Counted())
    def build(self, shape):
        self.attention.build(shape, shape)
        self.wide.build(shape)
        self.narrow.build((*shape[:-1], 32))
        super().build(shape)
    def call(self, x):
        x = x + self.attention(x, x)
        return x + self.narrow(self.wide(x))

def made(mode, lora, whole=True):
    keras.backend.clear_session()
    Counted.made = 0
    inputs = keras.Input((12,), dtype="int32")
    x = L.Embedding(50, 16, embeddings_initializer=Counted())(inputs)
    for _ in range(2):
        x = Block()(x)
    model = keras.Model(inputs, L.Dense(50, kernel_initializer=Counted())(x))
    for each in [model] if whole else [model.layers[-1]]:
        each.quantize(mode)
    for layer in model._flatten_layers() if lora else ():
        if getattr(layer, "lora_enabled", None) is False and layer.built:
            layer.enable_lora(2)
    rows = [(v.path, str(v.dtype), list(v.shape), v.trainable) for v in model.variables]
    policies = [layer.dtype_policy.name for layer in model._flatten_layers()]
    return {"rows": rows, "policies": policies, "made": Counted.made}

asked = {"int8": ("int8", False), "lora": ("int8", True), "int4": ("int4", False),
         "layer": ("int8", False, False)}
result = {}
for name, how in asked.items():
    with weightless():
        result[name] = made(*how)
    result[name]["plain"] = made(*how)
with weightless():
    made("int8", True)
    layer = L.Dense(3, kernel_initializer="ones")
    layer.build((None, 2))
    result["read"] = np.asarray(layer.kernel).tolist()
print(json.dumps(result))
"""


@functools.cache
def results() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=300,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("case", ["int8", "lora", "int4", "layer"])
def test_a_quantized_model_has_the_variables_and_policies_that_keras_gives_it(case: str) -> None:
    found = results()[case]
    assert found["rows"] == found["plain"]["rows"]
    assert found["policies"] == found["plain"]["policies"]
    assert any("int" in dtype for _, dtype, _, _ in found["rows"])


@pytest.mark.parametrize("case", ["int8", "int4", "lora", "layer"])
def test_quantizing_makes_no_value_of_any_kernel(case: str) -> None:
    found = results()[case]
    assert found["made"] == 0
    assert found["plain"]["made"] >= 14  # an embedding, two blocks of six kernels, a head


def test_a_value_that_is_read_is_the_one_of_its_initialiser() -> None:
    assert results()["read"] == [[1.0] * 3] * 2
