"""Variables are named, copied and set again, under a strategy as without."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.benches import in_tensorflow
from tests.runtime.forks import NO_GPU

from tfdyno.runtime.checkpoint.files import Entry
from tfdyno.runtime.checkpoint.state import first_difference

if TYPE_CHECKING:
    from pathlib import Path

SAVED = """
from pathlib import Path
from tfdyno.runtime.checkpoint.files import read_marker
from tfdyno.runtime.checkpoint.state import Snapshot, set_state, state_of, take_part
from tfdyno.runtime.checkpoint.writing import write_checkpoint

def saved(folder, state):
    snapshot = Snapshot()
    snapshot.take(state)
    content = dict(step=1, serial=1, pinned=False, epoch=0, step_in_epoch=0, seed=None,
                   position={}, random={}, history={}, extra=None)
    folder.mkdir(exist_ok=True)
    return read_marker(write_checkpoint(folder, content, snapshot.values, snapshot.parts))
"""
MIRRORED = (
    """
from dataclasses import replace
import keras, numpy as np, tensorflow as tf
from tfdyno.core.base.errors import TfdynoError
"""
    + SAVED
    + """
folder = Path(FOLDER)
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
keras.mixed_precision.set_global_policy("mixed_float16")
x, y = np.random.rand(48, 4), np.random.randint(0, 2, (48, 3))

class TwoOptimizers(keras.Model):  # as a GAN has
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.second = keras.optimizers.RMSprop(0.1)
        self.more = {"third": keras.optimizers.SGD(0.1)}
    def call(self, inputs, training=False):
        return self.inner(inputs, training=training)

def model():
    layers = [keras.layers.Dense(5), keras.layers.Dropout(0.5), keras.layers.BatchNormalization(),
              keras.layers.Dense(3)]
    built = TwoOptimizers(keras.Sequential([keras.Input((4,)), *layers]))
    built.compile(keras.optimizers.Adam(0.01, use_ema=True), "mse", metrics=["mae", "auc"])
    built.fit(x, y, batch_size=16, verbose=0)
    for optimizer in (built.second, built.more["third"]):
        optimizer.build(built.inner.layers[0].trainable_variables)
    return built

def values(state):
    taken = Snapshot()
    taken.take(state)
    return {name: value.copy() for name, value in taken.values.items()}

def equal(first, second):
    return [name for (name, one), two in zip(first.items(), second.values(), strict=True)
            if one.dtype != two.dtype or one.tobytes() != two.tobytes()]

def said(call):
    try:
        call()
    except TfdynoError as error:
        return str(error)

def same_memory(snapshot):
    snapshot.take(state)
    first = dict(snapshot.values)
    snapshot.take(state)
    return all(snapshot.values[name] is value for name, value in first.items())

with strategy.scope():
    on_read = dict(synchronization=tf.VariableSynchronization.ON_READ, trainable=False)
    kinds = tf.VariableAggregation
    apart = [tf.Variable(tf.zeros((2,), dtype), aggregation=kind, name=f"apart_{kind.name}_{dtype}",
                         **on_read)
             for kind, dtype in ((kinds.SUM, "int32"), (kinds.SUM, "float32"),
                                 (kinds.MEAN, "float32"), (kinds.NONE, "int32"),
                                 (kinds.ONLY_FIRST_REPLICA, "int32"))]
    two = model()
@tf.function
def step():
    def run():
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        for variable in apart:
            variable.assign(tf.cast(tf.fill((2,), replica + 3), variable.dtype))
    strategy.run(run)
step()
dtypes = ("bool int8 uint8 int16 int32 int64 half bfloat16 float8_e4m3fn float8_e5m2 double "
          "complex64")
plain = [tf.Variable(tf.cast(tf.constant([[0.0], [1.5]]), dtype), name="plain")
         for dtype in dtypes.split()]
shared = tf.Variable(3.0, name="plain")
state = state_of(two, [*apart, *plain, shared, shared])
before = values(state)
checkpoint = saved(folder, state)
for _, variable in state:
    raw = variable.value if isinstance(variable, keras.Variable) else variable
    for component in getattr(raw, "values", [raw]):
        component.assign(np.zeros(component.shape, component.dtype.as_numpy_dtype))
wiped = values(state)
set_state(state, checkpoint)
after = values(state)
shares = [part.numpy().tolist() for part in apart[0].values]
set_state(state, replace(checkpoint, arrays=()))  # as one device, or more of them, would leave it
sums = [part.numpy().tolist() for part in apart[0].values]

once_more = saved(folder, state)  # the same step: the file has another name
same = state_of(two, [*apart, *plain, shared])
wrong = state_of(two, [*apart, *plain[1:], shared])
refused = said(lambda: set_state(wrong, once_more))
same_refused = said(lambda: set_state(same, once_more))
two.inner.layers[0].kernel.assign(np.zeros((4, 5)))
said(lambda: set_state(wrong, once_more))
untouched = not np.any(two.inner.layers[0].kernel.numpy())

# Continued on one device, in the same process: Keras counts on ("dense_2").
one = model()
alone = state_of(one)
there = saved(folder, state_of(two))
joined = values(state_of(two))
set_state(alone, there)
names = [name for name, _ in state]
texts = tf.Variable(["a"])
result = {
    "names": names, "changed": equal(before, after), "wiped": len(equal(before, wiped)),
    "shares": shares, "sums": sums, "sum": int(before["extra/apart_SUM_int32"][0]),
    "refused": refused, "untouched": untouched, "kept_name": once_more.data_name,
    "same": same_refused,
    "alone": equal(joined, values(alone)), "differ": [name for name, _ in alone][0],
    "texts": said(lambda: Snapshot().take([("t", texts)])),
    "reused": same_memory(Snapshot()),
}
"""
)
WORKER = (
    """
import json, os, sys
import numpy as np, tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
"""
    + SAVED
    + """
folder, chief = Path(sys.argv[1]), json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 0
with strategy.scope():
    weight = tf.Variable([1.0, 2.0], name="weight")
    total = tf.Variable(0, trainable=False, name="total",
                        synchronization=tf.VariableSynchronization.ON_READ,
                        aggregation=tf.VariableAggregation.SUM)
state = [("weight", weight), ("total", total)]
strategy.run(lambda: total.assign(3 if chief else 4))
if chief:
    saved(folder, state)
else:
    take_part(state)
strategy.run(lambda: total.assign(100))
weight.assign([0.0, 0.0])
strategy.reduce("sum", strategy.run(lambda: tf.constant(1.0)), axis=None)  # all have arrived
set_state(state, read_marker(folder / "step-000000001.json"))
own = int(total.values[0].numpy())
found = {"weight": weight.numpy().tolist(), "sum": int(total.numpy()), "own": own}
print("\\n" + json.dumps(found))
"""
)


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("mirrored")
    found = in_tensorflow(f"FOLDER = {str(folder)!r}\n{MIRRORED}")
    assert isinstance(found, dict)
    return found


@pytest.mark.tf
def test_the_state_is_all_that_training_changes_once_under_unique_names(
    mirrored: dict[str, Any],
) -> None:
    names = mirrored["names"]
    assert len(names) == len(set(names))
    for part in (
        "model/sequential/dense/kernel", "model/seed_generator/seed_generator_state",
        "model/sequential/batch_normalization/moving_mean", "optimizer/adam/iteration",
        "optimizer/loss_scale_optimizer/dynamic_scale", "optimizer/adam/learning_rate",
        "optimizer/adam/sequential_dense_kernel_average",
        "optimizer/adam/sequential_dense_kernel_velocity",
        "optimizer/sgd/learning_rate", "optimizer/rm_sprop/sequential_dense_kernel_velocity",
        "metrics/loss/total", "metrics/auc/true_positives", "extra/plain", "extra/plain#2",
    ):  # fmt: skip
        assert any(name.startswith(part) for name in names), (part, names)
    assert sum("extra/plain" in name for name in names) == 13  # 12 dtypes and one, given twice


@pytest.mark.tf
def test_every_variable_of_a_strategy_has_its_value_again(mirrored: dict[str, Any]) -> None:
    assert mirrored["changed"] == []
    assert mirrored["wiped"] > 30
    assert mirrored["sum"] == 7  # a half for each would be 3, and 6 together
    assert mirrored["sums"] == [[7, 7], [0, 0]]
    assert mirrored["shares"] == [[3, 3], [4, 4]]
    assert mirrored["reused"]
    assert mirrored["texts"] == "a checkpoint cannot hold t: it is a variable of texts."


@pytest.mark.tf
def test_a_changed_model_is_refused_before_anything_is_set(mirrored: dict[str, Any]) -> None:
    assert "the model has changed since: extra/plain (bool [2, 1]) in the checkpoint is extra/plain (int8 [2, 1]) here" in mirrored["refused"]  # fmt: skip  # noqa: E501
    assert mirrored["untouched"]
    assert mirrored["same"] is None
    assert mirrored["kept_name"] == "step-000000001-1.npz"


@pytest.mark.tf
def test_what_two_devices_saved_goes_on_on_one_in_the_same_process(
    mirrored: dict[str, Any],
) -> None:
    assert mirrored["alone"] == []
    assert mirrored["differ"] == "model/sequential_1/dense_2/kernel"


# CI has two real workers that stop and go on in test_train_meeting.
@pytest.mark.slow
@pytest.mark.tf
def test_the_chief_of_two_workers_writes_and_both_read(tmp_path: Path) -> None:
    with socket.socket() as one, socket.socket() as two:
        for each in (one, two):
            each.bind(("localhost", 0))
        ports = [each.getsockname()[1] for each in (one, two)]
    cluster = {"worker": [f"localhost:{port}" for port in ports]}
    children = []
    for index in range(2):
        task = {"cluster": cluster, "task": {"type": "worker", "index": index}}
        environment = {**os.environ, **NO_GPU, "TF_CONFIG": json.dumps(task)}
        command = [sys.executable, "-c", WORKER, str(tmp_path)]
        with (tmp_path / f"{index}.log").open("w") as log:
            children.append(
                subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=log, env=environment, text=True
                )
            )
    try:
        said = [child.communicate(timeout=120)[0] for child in children]
    finally:
        for child in children:
            child.kill()
    logs = [(tmp_path / f"{index}.log").read_text()[-2000:] for index in range(2)]
    assert [child.returncode for child in children] == [0, 0], logs
    found = [json.loads(text.splitlines()[-1]) for text in said]
    assert [each["weight"] for each in found] == [[1.0, 2.0]] * 2
    assert [each["sum"] for each in found] == [7, 7]
    assert [each["own"] for each in found] == [3, 4]


def entries(*names: str, shape: tuple[int, ...] = (2,), dtype: str = "float32") -> list[Entry]:
    return [Entry(name=name, shape=shape, dtype=dtype) for name in names]


@pytest.mark.parametrize(
    ("there", "here"),
    [
        ("model/dense/kernel model/dense_1/kernel", "model/dense_4/kernel model/dense_5/kernel"),
        ("model/s_3/d/b model/s_3/d_1/b", "model/s/d_2/b model/s/d_3/b"),
        ("optimizer/adam/s_dense_kernel_m", "optimizer/a/adam_2/s_2_dense_9_kernel_m"),
        ("metrics/loss/total#2", "metrics/loss/total#2"),
    ],
)
def test_names_that_keras_counted_on_are_the_same(there: str, here: str) -> None:
    assert first_difference(entries(*there.split()), entries(*here.split())) == ""


@pytest.mark.parametrize(
    ("there", "here", "said"),
    [
        (
            "m/a_1/w m/a_2/w",
            "m/a_2/w m/a_1/w",
            "m/a_2/w (float32 [2]) in the checkpoint is m/a_1/w",
        ),
        ("m/a/w m/b/w", "m/a/w m/c/w", "m/b/w (float32 [2]) in the checkpoint is m/c/w"),
        ("m/a/w m/b/w", "m/a/w", "m/b/w (float32 [2]) of the checkpoint is missing here"),
        ("m/a/w", "m/a/w m/b/w", "m/b/w (float32 [2]) is not in the checkpoint"),
    ],
)
def test_other_names_are_told_apart(there: str, here: str, said: str) -> None:
    assert first_difference(entries(*there.split()), entries(*here.split())).startswith(said)


def test_shapes_and_dtypes_are_told_apart() -> None:
    base = entries("m/a/w")
    assert first_difference(base, entries("m/a/w", shape=(3,))).endswith("m/a/w (float32 [3]) here")
    assert first_difference(base, entries("m/a/w", dtype="half")).endswith("(half [2]) here")
