"""Child of ``test_quick.py``: Keras models' steps as StableHLO files, without their weights.

Usage: python keras_steps.py FOLDER. Writes ``NAME.mlir`` and ``NAME.json`` (roles and shapes).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras

BATCH = 37
Arrays = list[jax.Array]


def encoder(seq: int = 128, width: int = 768, depth: int = 12, heads: int = 12) -> keras.Model:
    tokens = keras.Input((seq,), dtype="int32")
    x = keras.layers.Embedding(30522, width)(tokens)
    for _ in range(depth):
        y = keras.layers.MultiHeadAttention(heads, width // heads)(x, x)
        x = keras.layers.LayerNormalization()(x + y)
        y = keras.layers.Dense(4 * width, activation="gelu")(x)
        x = keras.layers.LayerNormalization()(x + keras.layers.Dense(width)(y))
    return keras.Model(tokens, x)


def lstm() -> keras.Model:
    x = keras.Input((50, 128))
    return keras.Model(x, keras.layers.LSTM(256)(x))


def separable() -> keras.Model:
    x = y = keras.Input((64, 64, 32))
    y = keras.layers.DepthwiseConv2D(3, padding="same")(y)
    y = keras.layers.Conv2D(64, 1)(y)
    return keras.Model(x, y)


MODELS = {
    "resnet50": lambda: keras.applications.ResNet50(weights=None),
    "bert_base": encoder,
    "lstm": lstm,
    "separable": separable,
}


def abstract(variables: list[keras.Variable]) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in variables]


def write(folder: Path, name: str, mode: str) -> None:
    keras.backend.clear_session()
    with keras.StatelessScope(initialize_variables=False):
        model = MODELS[name]()
    weights, state = abstract(model.trainable_variables), abstract(model.non_trainable_variables)
    source = model.inputs[0]
    x = jax.ShapeDtypeStruct((BATCH, *source.shape[1:]), source.dtype)

    def loss(weights: Arrays, state: Arrays, x: jax.Array) -> object:
        y, new = model.stateless_call(weights, state, x, training=True)
        return (y.astype("float32") ** 2).sum(), new

    def train(weights: Arrays, state: Arrays, x: jax.Array) -> object:
        gradients, new = jax.grad(loss, has_aux=True)(weights, state, x)
        return [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)], new

    def infer(weights: Arrays, state: Arrays, x: jax.Array) -> object:
        return model.stateless_call(weights, state, x, training=False)[0]

    step = {"train": train, "infer": infer}[mode]
    lowered = jax.jit(step, keep_unused=True).lower(weights, state, x)
    module = lowered.compiler_ir("stablehlo")
    stem = folder / f"{name}_{mode}"
    stem.with_suffix(".mlir").write_text(module.operation.get_asm(enable_debug_info=True))
    tensors = [("weight", v.path, v.shape) for v in model.trainable_variables]
    tensors += [("state", v.path, v.shape) for v in model.non_trainable_variables]
    tensors += [("input", "x", x.shape)]
    stem.with_suffix(".json").write_text(json.dumps(tensors))


if __name__ == "__main__":
    for name in MODELS:
        for mode in ("train", "infer"):
            write(Path(sys.argv[1]), name, mode)
