"""Norms of gradients and activations beside a training that stays as it is."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
import pathlib, tempfile
import keras, numpy as np, tensorflow as tf
from keras import layers
from tfdyno.runtime.train.norms import Norms
from tfdyno.runtime.train.tensorboard import Board

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
x = np.random.default_rng(0).normal(size=(40, 4)).astype("float32")
y = np.abs(x).sum(1, keepdims=True)
folder = pathlib.Path(tempfile.mkdtemp())
traced = []

class Counted(keras.Sequential):
    def train_step(self, data):
        traced.append(self.name)
        return super().train_step(data)

class Watched(Board):
    def scalars(self, values, step, split="train"):
        self.seen = {**getattr(self, "seen", {}), step: dict(values)}
        super().scalars(values, step, split)

def build(name, dropout=0.0, policy="float32", several=1, strategy=None, jit=False, sequence=False):
    keras.config.set_dtype_policy(policy)
    keras.utils.set_random_seed(3)
    first = [layers.Reshape((4, 1)), layers.LSTM(3, name="lstm")] if sequence else []
    with (strategy or tf.distribute.get_strategy()).scope():
        model = Counted([keras.Input((4,)), *first, layers.Dense(8, activation="relu", name="one"),
                         layers.Dropout(dropout), layers.Dense(1, name="two", dtype="float32")],
                        name=name)
        optimizer = keras.optimizers.SGD(0.01)
        if policy == "mixed_float16":
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=64.0)
        model.compile(optimizer, "mse", steps_per_execution=several, jit_compile=jit)
    keras.config.set_dtype_policy("float32")
    return model

def train(model, every, batch=4):
    board = Watched(folder / model.name)
    if every:
        model.make_train_function()
        run, several, steps = model.train_function, model.steps_per_execution, [0]
        norms = Norms(model, board.scalars, every=every, steps_done=lambda: steps[0])
        watched = norms.watching(run)
        def counted(iterator):
            logs = watched(iterator)
            steps[0] += several
            return logs
        model.train_function = counted
    losses = model.fit(x, y, batch_size=batch, epochs=2, shuffle=True, verbose=0).history["loss"]
    board.close()
    return losses, getattr(board, "seen", {})

def expected(batch):
    # The same numbers by hand, from the weights before the first step; batches are not shuffled.
    model = build("by_hand")
    inner = keras.Model(model.inputs, [layer.output for layer in model.layers])
    with tf.GradientTape() as tape:
        outputs = inner(x[:batch])
        loss = tf.reduce_mean((outputs[-1] - y[:batch]) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    squares = [float(tf.reduce_sum(g**2)) for g in gradients]
    sizes = {f"activation_rms/{layer.name}": float(tf.sqrt(tf.reduce_mean(out**2)))
             for layer, out in zip(model.layers, outputs)}
    parts = {"one": sum(squares[:2]), "two": sum(squares[2:]), "all layers": sum(squares)}
    return {f"gradient_norm/{name}": part**0.5 for name, part in parts.items()} | sizes

def looked(model, batch=(x[:8], y[:8])):
    board = Board(folder / model.name)
    norms = Norms(model, board.scalars, every=1, steps_done=int)
    before = [np.asarray(keras.ops.convert_to_numpy(v)) for v in model.variables]
    found = norms.look(batch, 0)
    changed = [not np.array_equal(a, keras.ops.convert_to_numpy(b))
               for a, b in zip(before, model.variables, strict=True)]
    board.close()
    return found | {"changed": any(changed)}

def on_disk(name):
    found = {}
    for path in (folder / name / "train").iterdir():
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            event = tf.compat.v1.Event.FromString(record)
            for value in event.summary.value:
                number = float(tf.make_ndarray(value.tensor))
                found.setdefault(value.tag, []).append([event.step, number])
    return found

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensors((x[:8], y[:8])))
result = {
    "plain": train(build("plain", 0.5), 0),
    "watched": train(build("watched", 0.5), 4),
    "several": train(build("several", several=4), 0),
    "several_watched": train(build("several_watched", several=4), 5),
    "xla": train(build("xla", 0.5, jit=True), 0)[0],
    "xla_watched": train(build("xla_watched", 0.5, jit=True), 4)[0],
    "expected": expected(8),
    "one": looked(build("one_device")),
    "half": looked(build("half", policy="mixed_float16")),
    "two": looked(build("two_devices", strategy=strategy), next(iter(data))),
    "mirrored_watched": train(build("mirrored_watched", strategy=strategy), 7),
    "sequence": looked(build("sequence", sequence=True)),
    "on_disk": on_disk("watched"),
    "traces": {name: traced.count(name) for name in ("plain", "watched", "several",
                                                    "several_watched")},
}
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return in_tensorflow(CODE)


def test_a_norm_is_that_of_the_gradient_by_hand(found: dict[str, Any]) -> None:
    expected = found["expected"]
    assert len(expected) == 6
    for name in ("one", "two"):  # one device, and two that share the batch
        norms = found[name]
        assert norms.pop("changed") is False
        assert {_plain(k): v for k, v in norms.items()} == pytest.approx(
            {_plain(k): v for k, v in expected.items()}, rel=1e-5
        )


def _plain(tag: str) -> str:
    """Keras numbers its layers through a process."""
    return "activation_rms/dropout" if "/dropout" in tag else tag


def test_gradients_are_told_without_the_scale_of_the_loss(found: dict[str, Any]) -> None:
    for name in ("gradient_norm/one", "gradient_norm/two", "activation_rms/one"):
        assert found["half"][name] == pytest.approx(found["expected"][name], rel=5e-3)


def test_training_learns_the_same_with_and_without(found: dict[str, Any]) -> None:
    # Two epochs of ten batches, shuffled, with dropout.
    assert found["watched"][0] == found["plain"][0]
    assert found["several_watched"][0] == found["several"][0]
    assert found["xla_watched"] == found["xla"]
    assert found["mirrored_watched"][0] == pytest.approx(found["several"][0], rel=1e-5)


def test_it_is_looked_every_so_many_steps_only(found: dict[str, Any]) -> None:
    assert list(found["watched"][1]) == ["0", "4", "8", "12", "16"]
    assert list(found["mirrored_watched"][1]) == ["0", "7", "14"]
    # Four steps at a time: at the execution that holds the step; the last of ten holds two.
    assert list(found["several_watched"][1]) == ["0", "4", "8", "12", "20"]
    assert found["plain"][1] == {}


def test_the_step_is_traced_once_more_and_never_again(found: dict[str, Any]) -> None:
    assert found["traces"] == {"plain": 1, "watched": 2, "several": 1, "several_watched": 2}


def test_a_layer_that_loops_is_one_layer(found: dict[str, Any]) -> None:
    sizes = [name for name in found["sequence"] if name.startswith("activation_rms/")]
    assert sizes[1] == "activation_rms/lstm"
    assert not any("cell" in name for name in sizes)
    assert found["sequence"]["gradient_norm/lstm/lstm_cell"] > 0


def test_scalars_are_read_back(found: dict[str, Any]) -> None:
    on_disk, told = found["on_disk"], found["watched"][1]
    assert set(on_disk) == set(told["0"])
    for name, points in on_disk.items():
        assert points == [[int(step), pytest.approx(told[step][name])] for step in told]
