"""Models with and without recomputed parts, trained for real in a child."""

from __future__ import annotations

from typing import Any

from tests.runtime.benches import in_tensorflow

MODELS = """
import contextlib, os, tempfile
import keras, numpy as np, tensorflow as tf
from keras import layers as L
from tfdyno.core.base.errors import TfdynoError
from tfdyno.runtime.remat.rewrite import apply_remat

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
random = np.random.default_rng(0)

class Block(L.Layer):
    def __init__(self, units=16, **how):
        super().__init__(**how)
        self.first, self.second = L.Dense(units), L.Dense(units, activity_regularizer="l2")
        self.norm, self.drop = L.BatchNormalization(), L.Dropout(0.3)
    def build(self, shape):
        for layer in (self.first, self.norm, self.second):
            layer.build(shape)
        super().build(shape)
    def call(self, x):  # training comes by Keras' context alone
        return x + 0.1 * self.second(self.drop(keras.ops.gelu(self.norm(self.first(x)))))

class Encoder(L.Layer):
    def __init__(self, **how):
        super().__init__(**how)
        self.attention, self.norm = L.MultiHeadAttention(2, 8, dropout=0.2), L.LayerNormalization()
        self.wide, self.narrow, self.drop = L.Dense(32, "gelu"), L.Dense(16), L.Dropout(0.2)
        self.supports_masking = True
    def call(self, x, training=None):
        x = self.norm(x + self.attention(x, x, use_causal_mask=True))
        return x + self.drop(self.narrow(self.wide(x)))

class Pair(L.Layer):  # nested arguments and results, a keyword, whole numbers, a loss of its own
    def __init__(self, **how):
        super().__init__(**how)
        self.left, self.right = L.Dense(16), L.Dense(16)
    def call(self, both, *, scale, training=None):
        left, right = self.left(both["left"]) * scale["by"], self.right(both["right"])
        if training:
            self.add_loss(keras.ops.mean(left * right))
        count = keras.ops.sum(keras.ops.cast(left > 0, "int32"))
        return {"left": left + right, "right": [right, count]}

class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.stem, self.blocks, self.head = L.Dense(16), [Block() for _ in range(3)], L.Dense(1)
    def call(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)

class Nested(keras.Model):
    def __init__(self):
        super().__init__()
        self.stem, self.head = L.Dense(16), L.Dense(1)
        self.pairs = [Pair(name=f"pair_{n}") for n in range(2)]
    def call(self, x):
        both = {"left": self.stem(x), "right": x}
        for pair in self.pairs:
            out = pair(both, scale={"by": tf.reduce_mean(x) + 1.0})
            both = {"left": out["left"], "right": out["right"][0]}
        return self.head(both["left"] + both["right"])

def subclassed():
    return Subclassed(), random.normal(size=(64, 16)).astype("f")

def nested():
    return Nested(), random.normal(size=(64, 16)).astype("f")

def blocks():
    model = keras.Sequential([keras.Input((16,)), Block(), Block(), Block(), L.Dense(1)])
    return model, random.normal(size=(64, 16)).astype("f")

def chain():
    layers = [layer for _ in range(4) for layer in (
        L.Dense(32, "gelu"), L.BatchNormalization(), L.Dropout(0.3))]
    model = keras.Sequential([*layers, L.Dense(1)])  # built by the first batch
    return model, random.normal(size=(64, 16)).astype("f")

def recurrent():
    model = keras.Sequential([keras.Input((12, 4)), *[
        L.LSTM(8, return_sequences=True, dropout=0.2) for _ in range(3)], L.LSTM(8), L.Dense(1)])
    return model, random.normal(size=(64, 12, 4)).astype("f")

def transformer():
    inputs = keras.Input((12,), dtype="int32")
    x = L.Embedding(20, 16, mask_zero=True)(inputs)
    for _ in range(2):
        x = Encoder()(x)
    outputs = L.Dense(1)(L.GlobalAveragePooling1D()(x))
    words = random.integers(0, 20, size=(64, 12)).astype("int32")
    words[:, 8:] = 0
    return keras.Model(inputs, outputs), words

def residual():
    inputs = keras.Input((8, 8, 3))
    x = L.Conv2D(8, 3, padding="same", name="stem")(inputs)
    for n in range(3):
        y = L.Conv2D(8, 3, padding="same", name=f"block{n}_conv")(x)
        y = L.BatchNormalization(name=f"block{n}_norm")(y)
        y = L.Dropout(0.2, name=f"block{n}_drop")(L.ReLU(name=f"block{n}_relu")(y))
        x = L.Add(name=f"block{n}_add")([x, y])
    outputs = L.Dense(1)(L.GlobalAveragePooling2D()(x))
    return keras.Model(inputs, outputs), random.normal(size=(64, 8, 8, 3)).astype("f")

def values(model):
    return [np.asarray(v.value).astype("f8") for v in model.variables]

def apart(one, other):
    return max(float(np.max(np.abs(a - b))) for a, b in zip(one, other) if a.size)

def trained(make, wanted, strategy=None, policy="float32", **how):
    global random
    random = np.random.default_rng(0)
    keras.backend.clear_session()
    keras.utils.set_random_seed(3)
    keras.config.set_dtype_policy(policy)
    with strategy.scope() if strategy else contextlib.nullcontext():
        model, x = make()
        model.compile(keras.optimizers.SGD(0.005, momentum=0.9), "mse", **how)
        plan = apply_remat(model, wanted, batch_size=8, inputs=x) if wanted else None
    y = np.tanh(x.reshape(64, -1).mean(1, keepdims=True))
    history = model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    keras.config.set_dtype_policy("float32")
    return model, plan, history.history["loss"], x

def same(make, wanted="blocks", **how):
    plain, _, losses, x = trained(make, "", **how)
    model, plan, found, _ = trained(make, wanted, **how)
    return {"losses": losses, "found": found, "apart": apart(values(plain), values(model)),
            "names": plan.names, "notes": plan.notes,
            "before": plan.peak_bytes_before, "after": plan.peak_bytes,
            "extra": plan.extra_compute}

def said(call):
    try:
        call()
    except TfdynoError as error:
        return str(error)
"""


def run_models(code: str) -> dict[str, Any]:
    """What ``code`` puts into ``result``, run after the models above."""
    return in_tensorflow(MODELS + "result = {}\n" + code)
