from __future__ import annotations

import os
import subprocess
import sys

STEP = """
import keras
from tfdyno.runtime.batch import Batch
from tfdyno.runtime.dataspec import Leaf
from tfdyno.runtime.step_jax import lower_step

keras.config.set_dtype_policy("mixed_bfloat16")
tokens = keras.Input((4,), dtype="int32")
table = keras.layers.ReversibleEmbedding(11, 8)
hidden = keras.layers.Dense(8)(table(tokens))
model = keras.Model(tokens, table(hidden, reverse=True))
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
leaf = Leaf(shape=(4,), dtype="int32")
lowered = lower_step(model, Batch(x=leaf, y=leaf), batch_size=3, mode="train")
for line in str(lowered.module).splitlines():
    if "dot_general" in line and "tensor<8x11x" in line.split("->")[0]:
        print(line.rpartition("->")[2].strip(), vars(model).get("call"))
    if "dot_general" in line and "(tensor<3x4x8xbf16>, tensor<8x8xbf16>)" in line:
        print("dense in bfloat16")
"""


def test_an_embedding_as_head_multiplies_in_float32_as_tensorflow_does() -> None:
    # keras 3.15.1 with TensorFlow lowers the product of GPT-2's head to f32[8192,50257]; its
    # JAX backend alone would make bf16 of it
    environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    run = subprocess.run(
        [sys.executable, "-c", STEP], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    lines = run.stdout.splitlines()
    assert "tensor<3x4x11xf32> None" in lines
    assert "dense in bfloat16" in lines
