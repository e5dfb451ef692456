"""Models with text and tables at their inputs, trained in a child as they are and cut in two."""

from __future__ import annotations

import functools
from typing import Any

from tests.runtime.benches import in_tensorflow
from tests.runtime.once import once

MODELS = """
import tempfile
import keras, numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from tfdyno.core.base.errors import TfdynoError
from tfdyno.runtime.recipe.preprocessing import check_xla, found, split, statistics_on_cpu

L, WORDS = keras.layers, ["red", "green", "blue", "black"]
rng = np.random.default_rng(0)
text = tf.constant([[" ".join(rng.choice(WORDS, 5))] for _ in range(64)])
color = tf.constant(rng.choice([*WORDS, "other"], size=(64, 1)))
age = rng.normal(40, 10, (64, 3)).astype("float32")
y = rng.integers(0, 2, (64, 1)).astype("float32")

def compiled(model):
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    return model

def features(cls=keras.Model):
    keras.utils.set_random_seed(1)
    c, t = (keras.Input((1,), dtype="string", name=name) for name in ("color", "text"))
    a = keras.Input((3,), name="age")
    look = L.StringLookup(vocabulary=WORDS, name="look")(c)
    words = L.TextVectorization(vocabulary=WORDS, output_sequence_length=6, name="words")(t)
    norm = L.Normalization(name="norm")
    norm.adapt(age)
    hashed = L.Hashing(8, name="hash")(c)
    one_hot = L.CategoryEncoding(8, output_mode="one_hot", name="one_hot")(hashed)
    embedded = L.GlobalAveragePooling1D()(L.Embedding(6, 4, mask_zero=True)(words))
    together = [L.Flatten()(L.Embedding(5, 4)(look)), one_hot, embedded, norm(a)]
    hidden = L.Dense(8, activation="relu")(L.Concatenate()(together))
    out = L.Dense(1, activation="sigmoid")(L.Dropout(0.3)(hidden))
    return compiled(cls({"color": c, "text": t, "age": a}, out))

def sequential(policy=None):
    keras.utils.set_random_seed(1)
    return compiled(keras.Sequential([
        keras.Input((1,), dtype="string"),
        L.TextVectorization(vocabulary=WORDS, output_sequence_length=6, name="words"),
        L.Embedding(6, 4), L.GlobalAveragePooling1D(), L.Dense(1, activation="sigmoid")]))

def glued():
    # The two lookups meet before the third: all that is between them moves along.
    keras.utils.set_random_seed(1)
    c = keras.Input((1,), dtype="string")
    ids = L.Concatenate()([L.StringLookup(vocabulary=WORDS)(c), L.Hashing(9)(c)])
    again = L.IntegerLookup(vocabulary=[1, 2, 3], name="again")(ids)
    return compiled(keras.Model(c, L.Dense(1)(L.Flatten()(L.Embedding(4, 2)(again)))))

def half():
    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        a = keras.Input((3,))
        norm = L.Normalization(mean=[40.0, 40.0, 40.0], variance=[9.0, 9.0, 9.0])
        return compiled(keras.Model(a, L.Dense(1, activation="sigmoid", dtype="float32")(norm(a))))
    finally:
        keras.config.set_dtype_policy("float32")

class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.look = L.StringLookup(vocabulary=WORDS, name="x")
        self.table, self.out = L.Embedding(5, 4), L.Dense(1)
    def call(self, v):
        return self.out(L.Flatten()(self.table(self.look(v))))

class OwnStep(keras.Model):
    def train_step(self, data):
        return super().train_step(data)

def images():
    i = keras.Input((8, 8, 3), dtype="uint8")
    flipped = L.RandomFlip(name="flip")(L.Rescaling(1 / 255, name="scale")(i))
    zoomed = L.RandomZoom(0.1, name="zoom")(flipped)
    return compiled(keras.Model(i, L.Dense(1)(L.Flatten()(zoomed))))

def middle():
    i = keras.Input((4,))
    binned = L.Discretization([0.0, 1.0], name="bins")(L.Dense(3)(i))
    return compiled(keras.Model(i, L.Dense(1)(L.Flatten()(L.Embedding(3, 2)(binned)))))

MADE = {"features": (features, {"color": color, "text": text, "age": age}),
        "sequential": (sequential, text), "glued": (glued, color), "half": (half, age)}

def batches(x, shuffled=True):
    keras.utils.set_random_seed(5)
    made = tf.data.Dataset.from_tensor_slices((x, y))
    return (made.shuffle(64) if shuffled else made).batch(16)

def difference(a, b):
    return max(float(np.abs(np.subtract(p, q, dtype="float64")).max()) for p, q in zip(a, b))

def floats(model):
    return [w for w in model.get_weights() if w.dtype.kind == "f"]

def said(call, *given):
    try:
        call(*given)
    except TfdynoError as error:
        return str(error)

class Looks(keras.callbacks.Callback):
    # What callbacks do with the model: raw data in, the whole model out.
    def __init__(self, raw):
        super().__init__()
        self.raw, self.path, self.saved = raw, tempfile.mkdtemp() + "/m.keras", None
    def on_epoch_end(self, epoch, logs=None):
        self.predicted = self.model.predict(self.raw, verbose=0)
        self.model.save(self.path)

def both(name):
    make, x = MADE[name]
    whole, cut = make(), make()
    plain = batches(x)
    wanted = whole.fit(plain, epochs=3, verbose=0, validation_data=batches(x, False)).history
    parts, looks = split(cut), Looks(batches(x, False))
    prepared = parts.dataset(batches(x))
    kinds = {str(spec.dtype) for spec in prepared.element_spec[0].values()}
    nodes = [len(layer._inbound_nodes) for layer in cut.layers]
    with parts.in_step():
        got = cut.fit(prepared, epochs=3, verbose=0, callbacks=[looks],
                      validation_data=parts.dataset(batches(x, False))).history
    loaded = keras.models.load_model(looks.path)
    xla = make()
    parts_of_xla = split(xla)
    with parts_of_xla.in_step(compiled=True):
        jit = xla.jit_compile
        again = xla.fit(parts_of_xla.dataset(batches(x)), epochs=3, verbose=0,
                        validation_data=parts_of_xla.dataset(batches(x, False))).history
    return {
        "wanted": wanted, "got": got, "weights": difference(floats(whole), floats(cut)),
        "kinds": sorted(kinds), "moved": [layer.name for layer in parts.moved],
        "before": len(parts.before.outputs),
        "predicted": difference([whole.predict(x, verbose=0)], [cut.predict(x, verbose=0)]),
        "loaded": difference([looks.predicted], [loaded.predict(x, verbose=0)]),
        "touched": nodes != [len(layer._inbound_nodes) for layer in make().layers],
        "left": [key for key in ("call", "_assert_input_compatibility") if key in vars(cut)],
        "jit": jit, "xla": again, "jit_after": xla.jit_compile,
        "sentences": [each.sentence for each in found(cut)],
    }
"""


@functools.cache
def prepared() -> dict[str, Any]:
    """What was found in one child that all tests of preprocessing share."""
    code = """
result = {name: both(name) for name in MADE}
def told(model):
    return [each.sentence for each in found(model)]
subclassed = compiled(Subclassed())
subclassed(color)
own = features(OwnStep)
result["whole"] = {
    name: {"split": split(model) is None, "told": told(model), "xla": said(check_xla, model)}
    for name, model in {"subclassed": subclassed, "own_step": own, "images": images(),
                        "middle": middle(), "plain": compiled(keras.Sequential([
                            keras.Input((3,)), L.Dense(1)]))}.items()}
words = MADE["sequential"][0]()
result["recomputed"] = {"told": [each.sentence for each in found(words, is_whole=True)],
                        "xla": said(lambda: check_xla(words, is_whole=True))}
result["checked"] = {name: said(check_xla, make()) for name, (make, _) in MADE.items()}
def place(layer):
    return [layer.adapt_mean.value.device[-1], layer.mean.device[-1]]
def adapted():
    layer = L.Normalization()
    with tf.device("CPU:1"):
        layer.adapt(tf.data.Dataset.from_tensor_slices(age).batch(16))
    return layer
original = L.Normalization.adapt
plain = adapted()
with statistics_on_cpu():
    moved = adapted()
result["adapted"] = {
    "plain": place(plain), "moved": place(moved), "same": difference([plain.mean], [moved.mean]),
    "restored": L.Normalization.adapt is original,
    "right": difference([moved.mean], [age.mean(0)[None]]),
}
"""
    return dict(once("prepared", lambda: in_tensorflow(f"{MODELS}{code}")))
