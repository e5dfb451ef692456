"""A NaN is planted in every place that there is, and found there."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
import dataclasses
import keras, numpy as np, tensorflow as tf
from keras import layers, ops
from tfdyno.runtime.nan.locator import locate

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
rng = np.random.default_rng(0)
x = rng.normal(size=(8, 4)).astype("float32")
y = rng.uniform(size=(8, 1)).astype("float32")
result = {}

class Log(layers.Layer):
    def call(self, inputs):
        return ops.log(ops.relu(inputs))

class Root(layers.Layer):
    def call(self, inputs):
        return ops.sqrt(ops.relu(inputs))

class Block(layers.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.first, self.second = layers.Dense(4, name="first"), layers.Dense(4, name="second")

    def call(self, inputs):
        hidden = self.first(inputs)
        return self.second(hidden) / ops.sum(ops.zeros_like(hidden), axis=-1, keepdims=True)

class Masked(layers.Layer):
    def call(self, inputs):
        return ops.where(inputs > 0, inputs, -np.inf)

class Own(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.optimizer.scale_loss(ops.mean((self(x, training=True) - y) ** 2))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"my_loss": loss}

class Traced(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense, self.log, self.out = layers.Dense(4), Log(name="log"), layers.Dense(1)

    @tf.function
    def call(self, inputs):
        return self.out(self.log(self.dense(inputs)))

def sequence(*parts, kind=keras.Sequential, loss="mse", built=(8, 4), optimizer="adam", **how):
    model = kind(list(parts))
    model.compile(optimizer, loss, **how)
    model.build(built)
    model.optimizer.build(model.trainable_variables)
    return model

def functional(inputs, outputs, kind=keras.Model, loss="mse"):
    model = kind(inputs, outputs)
    model.compile("adam", loss)
    model.optimizer.build(model.trainable_variables)
    return model

def state(model):
    found = [*model.variables, *model.optimizer.variables]
    found += [v for metric in model.metrics for v in metric.variables]
    return [np.asarray(v) for v in found]

def find(name, model, batch, **how):
    before = state(model)
    finding = locate(model, batch, **how)
    pairs = zip(before, state(model), strict=True)
    result[name] = dataclasses.asdict(finding)
    result[name]["unchanged"] = all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)

def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array

# Data
two = {"age": keras.Input((3,), name="age"), "size": keras.Input((2,), name="size")}
wide = functional(two, layers.Dense(1)(layers.Concatenate()(list(two.values()))))
ages = changed(np.ones((8, 3), "float32"), ([2, 5], [1, 1]), np.nan)
data = {"age": ages, "size": np.ones((8, 2), "float32")}
find("input", wide, (data, y), seen="loss is nan at step 3 of epoch 1")
plain = sequence(layers.Dense(4, name="one"), layers.Dropout(0.5), layers.Dense(1, name="two"))
find("label", plain, (x, changed(y, (6, 0), np.inf)))
find("weight", plain, (x, y, changed(np.ones(8, "float32"), 4, np.nan)))

# Weights
broken = sequence(layers.Dense(4, name="one"), layers.Dense(1, name="two"))
broken.layers[1].kernel.assign(np.full((4, 1), np.nan))
find("variable", broken, (x, y))

# Forward
find("layer", sequence(layers.Dense(4), Log(name="my_log"), layers.Dense(1)), (x, y))
inputs = keras.Input((4,))
find("operation", functional(inputs, layers.Dense(1)(ops.log(ops.relu(inputs)))), (x, y))
find("composite", sequence(Block(name="block"), layers.Dense(1)), (x, y))
masked = layers.Softmax(name="soft")(Masked(name="mask")(inputs))
find("mask", functional(inputs, layers.Dense(1)(Log(name="later")(masked - 2.0))),
     (changed(x, (slice(None), 0), 1.0), y))
traced = Traced()
traced.compile("adam", "mse")
traced(x)
traced.optimizer.build(traced.trainable_variables)
find("traced", traced, (x, y))
keras.config.set_dtype_policy("mixed_float16")
half = sequence(layers.Dense(4, name="wide", kernel_initializer="ones"), layers.Dense(1))
find("half", half, (x * 0 + 3e4, y))
find("cast", half, (x * 0 + 1e5, y))
keras.config.set_dtype_policy("float32")

# Loss
def log_loss(truth, predicted):
    return -ops.mean(truth * ops.log(predicted))

zero = layers.Dense(1, activation="relu", kernel_initializer="zeros")
find("loss", sequence(zero, loss=log_loss), (x, y))
heads = functional(inputs, [layers.Dense(1, name="a")(inputs), layers.Dense(
    1, activation="relu", kernel_initializer="zeros", name="b")(inputs)], loss=["mse", log_loss])
heads.test_on_batch(x, (y, y))  # its metrics are made then
find("heads", heads, (x, (y, y)))
def chosen(truth, predicted):
    share = ops.sum(ops.one_hot(truth[:, 0], 3) * ops.softmax(predicted), axis=-1)
    return -ops.mean(ops.log(share))

classes = changed(np.zeros((8, 1), "int32"), (3, 0), 7)
find("classes", sequence(layers.Dense(3), loss=chosen), (x, classes))
added = sequence(layers.Dense(1, kernel_regularizer=lambda kernel: ops.sum(ops.log(kernel * 0))))
find("added", added, (x, y))

# Gradients
still = layers.Dense(4, kernel_initializer="zeros", name="still")
find("gradient", sequence(layers.Dense(4, name="before"), still, Root(name="root"),
                          layers.Dense(1, name="after")), (x, y))
table = sequence(layers.Embedding(5, 4, embeddings_initializer="zeros", name="table"),
                 Root(name="root"), layers.Flatten(), layers.Dense(1), built=(8, 2))
find("sparse", table, (np.ones((8, 2), "int32"), y))

# A train_step of its own
own = layers.Dense(4, name="still", kernel_initializer="zeros")
find("own_layer", functional(inputs, layers.Dense(1)(Log(name="my_log")(inputs)), kind=Own), (x, y))
find("own_gradient", functional(inputs, layers.Dense(1)(Root()(own(inputs))), kind=Own), (x, y))

class Fails(Own):
    def train_step(self, data):
        raise ValueError("cannot run here")

find("fails", functional(inputs, layers.Dense(1)(inputs), kind=Fails), (x, y))

# Strategies, and nothing wrong
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    mirrored = sequence(layers.Dense(4), layers.BatchNormalization(), Log(name="my_log"),
                        layers.Dense(1))
spread = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensors((x, y)))
before = [np.asarray(keras.ops.convert_to_numpy(v)) for v in mirrored.variables]
for name, batch in (("mirrored", (x, y)), ("replicas", next(iter(spread)))):
    result[name] = dataclasses.asdict(locate(mirrored, batch))
    result[name]["unchanged"] = all(
        np.array_equal(a, keras.ops.convert_to_numpy(b))
        for a, b in zip(before, mirrored.variables, strict=True))
with strategy.scope():
    mirrored = sequence(layers.Dense(4, kernel_initializer="zeros", name="still"), Root(),
                        layers.Dense(1))
result["mirrored_gradient"] = dataclasses.asdict(locate(mirrored, (x, y))) | {"unchanged": True}
find("fine", plain, (x, y))
plain.fit(x, y, verbose=0)  # the hooks are gone
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return in_tensorflow(CODE)


def proof(finding: dict[str, Any]) -> str:
    return "\n".join(each["text"] for each in finding["evidence"])


def fix(finding: dict[str, Any]) -> str:
    return "\n".join(each["text"] for each in finding["fix"])


def test_nothing_of_the_model_is_changed(found: dict[str, Any]) -> None:
    assert [name for name, finding in found.items() if not finding["unchanged"]] == []


def test_data_with_the_feature_and_the_place(found: dict[str, Any]) -> None:
    inputs = found["input"]
    assert inputs["summary"].endswith("x['age'], sample 2 of the batch, feature 1.")
    assert proof(inputs) == (
        "loss is nan at step 3 of epoch 1\n"
        "x['age']: 2 NaN of 24 values; the first at [2, 1], all of them in feature 1"
    )
    assert found["label"]["summary"] == (
        "The labels hold values that are not finite: y, sample 6 of the batch."
    )
    assert "sample_weight: 1 NaN of 8 values; the first at [4]" in proof(found["weight"])
    assert "leave such samples out: x['age'], sample 2" in fix(inputs)


def test_weights_that_were_lost_before(found: dict[str, Any]) -> None:
    finding = found["variable"]
    assert finding["verdict"] == "likely"  # when they were lost is not known
    assert "/two/kernel: 4 NaN of 4 values; 1 of " in proof(finding)
    assert "clip_norm=1.0" in fix(finding)


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("layer", "my_log (Log)"), ("operation", "log (Log)"), ("composite", "block (Block)"),
        ("mask", "later (Log)"), ("traced", "traced/log (Log)"), ("own_layer", "my_log (Log)"),
        ("mirrored", "my_log (Log)"), ("replicas", "my_log (Log)"),
    ],
)  # fmt: skip
def test_the_first_layer_that_gives_it(found: dict[str, Any], name: str, layer: str) -> None:
    finding = found[name]
    assert finding["summary"].endswith(f"{layer} is the first layer whose output is not finite.")
    assert "computes in float32: max |input| " in proof(finding)
    assert (finding["cause"], finding["verdict"]) == ("num.nan", "proven")
    assert "epsilon" in fix(finding)
    assert ("in its own code" in finding["why"]) == (name == "composite")


def test_float16_that_overflows_in_a_layer_or_before_it(found: dict[str, Any]) -> None:
    half, cast = found["half"], found["cast"]
    assert "wide (Dense) computes in float16: max |input| 30000, output 32 inf" in proof(half)
    assert 'give it dtype="float32"' in fix(half)
    assert "max |input| 100000" in proof(cast)
    assert "when it is cast" in cast["why"]
    for finding in (half, cast):
        assert finding["cause"] == "num.mixed_nan"
        assert "float16 ends at 65,504." in finding["why"]
        assert "precision=mixed_bfloat16" in fix(finding)
        assert "Scale the inputs" in fix(finding)


def test_a_loss_of_finite_outputs(found: dict[str, Any]) -> None:
    assert "output: between 0 and 0" in proof(found["loss"])
    assert "from_logits=True" in fix(found["loss"])
    assert found["heads"]["summary"].endswith("the loss does not: b_loss.")
    assert "output[1]: between 0 and 0" in proof(found["heads"])
    assert "1 of 1 losses of regularizers and add_loss" in proof(found["added"])
    assert "a label is 7, the model has 3 outputs" in proof(found["classes"])
    assert found["classes"]["fix"][0]["text"] == "Give the last layer one unit per class."


def test_a_gradient_of_a_finite_loss(found: dict[str, Any]) -> None:
    for name in ("gradient", "mirrored_gradient"):
        assert "(Root)" in found[name]["summary"]
        assert "gradient of its output finite" in proof(found[name])
        assert "still/bias: 4 NaN of 4 values" in proof(found[name])
    assert "root (Root); first in " in found["sparse"]["summary"]
    assert found["sparse"]["summary"].endswith("/table/embeddings.")
    assert "Clipping does not mend it" in fix(found["gradient"])


def test_a_train_step_of_its_own_tells_what_it_hides(found: dict[str, Any]) -> None:
    own = found["own_gradient"]
    assert own["summary"].endswith("on the way to still/bias; first in still/bias.")
    assert "the train_step is the model's own" in proof(own)
    assert "the step failed: ValueError: cannot run here" in proof(found["fails"])
    assert found["fails"]["verdict"] == "possible"


def test_nothing_is_made_up(found: dict[str, Any]) -> None:
    finding = found["fine"]
    assert finding["verdict"] == "possible"
    assert "every layer, the loss and the gradients are finite" in proof(finding)
