"""The modules of training on JAX, looked at in one process with four devices: it starts slowly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.runtime.once import once

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

SRC = Path(__file__).parents[2] / "src"
CHILD = """
import json, os, sys, tempfile
from pathlib import Path
os.chdir(tempfile.mkdtemp())
import numpy as np
from tfdyno.core.train.device_mesh import read_mesh
from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.layout import Rule
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import RunSettings
from tfdyno.runtime.train_jax import start as jax_start

def said(run):
    try:
        return run()
    except TfdynoError as error:
        return str(error)

def world(**given):
    return jax_start.begin(JaxPlan(**given), Recipe(seed=3), addresses=(), rank=0, gpus=0)

found = {}
up = Rule(pattern=".*up/kernel", axes=("", "model"))
split = world(mesh=read_mesh("data=2,model=2"), rules=(up,))
import jax, keras
found["start"] = {
    "mesh": str(split.mesh), "kind": type(split.distribution).__name__,
    "set": keras.distribution.distribution() is split.distribution,
    "unused": [jax_start.unused_gpus(count) for count in (0, 1, 8)],
    "gpu": said(lambda: jax_start.begin(JaxPlan(), Recipe(), addresses=(), rank=0, gpus=2)),
    "software": jax_start.software(),
}
held = []
with jax_start.distribution_held(held):
    keras.distribution.set_distribution(None)
    keras.distribution.set_distribution(None)
    found["start"]["held"] = [keras.distribution.distribution() is not None, held]
keras.distribution.set_distribution(split.distribution)

def small(name="small"):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, name="up"),
                              keras.layers.Dense(1, name="down")], name=name)
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), "mse")
    return model

# Layout
from tfdyno.runtime.train_jax import layout as jax_layout
model = small()
model.optimizer.build(model.trainable_variables)
layout = jax_layout.layout_of(model, split.distribution)
found["layout"] = {
    "weights": {w.path: [w.axes, w.rule] for w in layout.weights},
    "slots": [layout.slot_bytes, layout.whole_slot_bytes],
    "rules": [r.pattern for r in jax_layout.rules_in(layout, split.distribution)],
}
found["layout"]["made"] = said(lambda: jax_layout.layout_of(model, world(
    mesh=read_mesh("model=2"), rules=(Rule(pattern="x", axes=("",)),)).distribution))
other = world(mesh=read_mesh("model=2"), rules=(Rule(pattern="x", axes=("",)),))
found["layout"]["none"] = said(lambda: jax_layout.layout_of(small("o"), other.distribution))
found["layout"]["bad"] = said(lambda: jax_layout.SplitWeights(
    split.mesh, split.distribution.device_mesh, (Rule(pattern=".*", axes=("",)),)
).axes_of("up/kernel", (4, 8)))
proposed = world(mesh=read_mesh("model=4"))
of_proposal = jax_layout.layout_of(small("proposed"), proposed.distribution)
found["layout"]["proposed"] = {w.path: [w.axes, w.rule] for w in of_proposal.weights}
keras.distribution.set_distribution(split.distribution)

# Values
from tfdyno.runtime.base import jax_values
kernel = model.layers[0].kernel
new = np.arange(32, dtype="float32").reshape(4, 8)
jax_values.put(kernel, new)
holder = jax_values.Whole(kernel)
with jax_values.read_whole():
    through_keras = np.asarray(kernel, "float64").tolist()
    copied = np.array(kernel, copy=True)
found["values"] = {
    "whole": jax_values.whole(kernel.value).tolist() == new.tolist(),
    "part": list(kernel.value.addressable_shards[0].data.shape),
    "keras": through_keras == new.tolist() and copied.tolist() == new.tolist(),
    "described": [list(holder.shape), holder.dtype.name, holder.is_joint],
    "read": holder.read_value().tolist() == new.tolist(),
    "restored": jax_values.read_whole is not None and keras.Variable.__array__.__module__,
}

# Ranks
from tfdyno.runtime.train_jax import loop as jax_loop
before = said(lambda: jax_loop.check_same_weights(model.trainable_variables))
value = kernel.value
parts = [s.data + (s.device.id == 3) for s in value.addressable_shards]
kernel._value = jax.make_array_from_single_device_arrays(value.shape, value.sharding, parts)
found["ranks"] = {"same": before, "drifted": said(lambda: jax_loop.check_same_weights([kernel])),
                  "data": said(lambda: jax_loop.check_same_data(7)),
                  "odd": [jax_loop.odd_ones({(1, 1): one, (2, 2): two}) for one, two in
                          (([0, 1, 3], [2]), ([0], [1]), ([0, 0, 0], [0]))]}

# Data
from tfdyno.runtime.train_jax import data as jax_data
compared = []
batches = jax_data.Batches(split, compared.append)
x = np.arange(48, dtype="float64").reshape(12, 4)
placed = batches.placed((x, None, {"a": x[:, 0]}))
last = batches.placed(x[:3])
found["data"] = {
    "type": str(placed[0].dtype), "none": placed[1] is None, "compared": len(compared),
    "part": list(placed[0].addressable_shards[0].data.shape),
    "last": list(last.addressable_shards[0].data.shape),
    "largest": batches.largest,
    "odd": said(lambda: jax_data.Batches(split, print).placed(x[:3])),
    "text": said(lambda: jax_data.Batches(split, print).placed(np.array(["a", "b"]))),
}
import random

class Drawn(keras.utils.PyDataset):
    # an order that Python draws anew for each epoch of 5 batches; without a count it never ends
    def __init__(self, count):
        super().__init__()
        self.count, self.order = count, list(range(5))
    def __len__(self):
        return self.count
    @property
    def num_batches(self):
        return self.count
    def __getitem__(self, index):
        return (np.full((2, 1), self.order[index % 5]),)
    def on_epoch_end(self):
        random.shuffle(self.order)

def read(skip=0, epochs=0, kind="arrays"):
    # two epochs, as fit reads them
    keras.utils.set_random_seed(5)
    own = jax_data.Batches(split, lambda digest: None)
    own.skip, own.epochs_before = skip, epochs
    data = np.arange(10).reshape(10, 1)
    if kind == "dataset":
        import tensorflow as tf
        data = tf.data.Dataset.from_tensor_slices(data).shuffle(10).batch(4)
    if kind in ("python", "endless"):
        data = Drawn(5 if kind == "python" else None)
        replayed = lambda read_epoch: [read_epoch() for _ in range(epochs)]
        own.replay = replayed if epochs else None
    if kind == "generator":
        data = ((np.full((2, 1), n),) for n in range(9))
    with jax_data.batches_of(own):
        from keras.src.backend.jax import trainer
        steps = {"generator": 3, "endless": 5}.get(kind)
        iterator = trainer.JAXEpochIterator(
            data, batch_size=4, shuffle=kind == "arrays", steps_per_epoch=steps)
        turns = []
        for _ in range(2):
            turn = []
            with iterator.catch_stop_iteration():
                for begin, _, batch in iterator:
                    turn.append([begin, None if batch is jax_data.NO_BATCH else
                                 np.asarray(next(batch)[0]).ravel().tolist()])
            turns.append(turn)
    return turns
found["data"]["arrays"] = read(), read(skip=2)
found["data"]["dataset"] = read(kind="dataset"), read(kind="dataset", epochs=1)
found["data"]["none_left"] = read(skip=3)
for kind in ("python", "endless"):
    found["data"][kind] = read(kind=kind), read(kind=kind, epochs=1)
found["data"]["generator"] = read(kind="generator"), read(kind="generator", epochs=1)

# Callbacks, loop, outcome
from tfdyno.runtime.recipe.settle import settle_step
x = x / 48
y = x[:, :1]
from tfdyno.runtime.train_jax.loop import JaxTraining, _Session, train
lines = []
def fit(model, settings, seed=3, **given):
    training = JaxTraining(recipe=Recipe(seed=3), plan=JaxPlan(
        mesh=split.mesh, rules=(up,), write_layout="kept.toml"), world=split,
        progress=lines.append)
    keras.utils.set_random_seed(seed)
    arguments = {"x": x, "y": y, "batch_size": 4, **given}
    return train(small(model), arguments, settings, training)
heard = []
class Own(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None): heard.append("own epoch_begin")
    def on_epoch_end(self, epoch, logs=None): heard.append("own epoch_end")
def told(name, own):
    def method(self, *given, **named):
        heard.append(name)
        own(self, *given, **named)
    return method
names = ["built", "train_begin", "epoch_begin", "ran", "begin_validation", "end_validation",
         "epoch_ends", "epoch_end"]
silent = {name: getattr(_Session, name) for name in names}
for name, own in silent.items():
    setattr(_Session, name, told(name, own))
fit("heard", RunSettings(), callbacks=[Own()], validation_data=(x[:4], y[:4]))
for name, own in silent.items():
    setattr(_Session, name, own)
lines.clear()
whole = fit("a", RunSettings(output="a"), epochs=3)
fit("b", RunSettings(output="b"), epochs=1)
late = fit("late", RunSettings(output="late", keep=9, checkpoint_steps=1), epochs=2)
markers = [json.loads(one.read_bytes()) for one in sorted(Path("late").glob("*/step-*.json"))]
for marker in Path("late/checkpoints").glob("step-00000000[3-9].json"):
    marker.unlink()
def ended(epochs):
    # as if killed after the last step of an epoch, before its end
    own = _Session.epoch_end
    def epoch_end(self, epoch, logs):
        if epoch == 0:
            self.model.jax_state_sync()
            self.save(wait=True)
            raise RuntimeError("killed")
        own(self, epoch, logs)
    _Session.epoch_end = epoch_end
    try:
        fit("ended", RunSettings(output="ended"), epochs=epochs)
    except RuntimeError:
        pass
    _Session.epoch_end = own
    return fit("ended", RunSettings(output="ended", resume=True), epochs=epochs)
in_epoch = fit("late", RunSettings(output="late", resume=True), epochs=2)
at_end = ended(3)
on = fit("b", RunSettings(output="b", resume=True), epochs=3)
lost = fit("c", RunSettings(output="c"), epochs=2, y=y * np.nan)
class Poison(keras.callbacks.Callback):
    # XLA's relu keeps NaN, so that only a callback or the last steps can do it here
    def on_epoch_end(self, epoch, logs=None):
        kernel = self.model.get_layer("up").kernel
        kernel.assign(kernel * np.nan)
hidden = fit("hidden", RunSettings(output="hidden"), epochs=3, callbacks=[Poison()])
same = RunSettings(first_weights="first.npz")
alike = [fit("first", given, seed, epochs=1, shuffle=False).history["loss"]
         for given, seed in ((same, 3), (same, 5), (RunSettings(), 5))]
found["callbacks"] = heard
found["loop"] = {
    "hidden": [hidden.stopped, hidden.epochs, hidden.history["loss"], hidden.model_path,
               [f.summary for f in hidden.findings],
               sorted(p.name for p in Path("hidden/checkpoints").glob("*.json"))],
    "markers": [[m["epoch"], m["step_in_epoch"], m["position"], sorted(m["extra"])]
                for m in markers[2:4]],
    "late": [late.history, in_epoch.history, in_epoch.resumed_from],
    "ended": [at_end.history, at_end.steps],
    "whole": whole.history, "on": on.history, "steps": [whole.steps, on.steps, on.updates],
    "from": on.resumed_from,
    "kept": Path("kept.toml").read_text() == Path("a/layout.toml").read_text(),
    "events": [json.loads(line)["event"] for line in lines][:2],
    "lost": [lost.stopped, len(lost.findings)],
    "alike": alike,
}
from dataclasses import asdict
found["outcome"] = {
    "model": Path(whole.model_path).name, "applied": [asdict(a) for a in whole.applied],
    "replicas": whole.replica_count, "batch": whole.global_batch_size,
    "memory": whole.peak_memory_bytes > 0, "parameters": whole.parameter_count,
    "settled": settle_step(small("d"), Recipe(steps_per_execution=2, execution="xla")),
    "policy": said(lambda: settle_step(small("e"), Recipe(precision="mixed_bfloat16"))),
}
os.write(int(sys.argv[1]), json.dumps(found, default=str).encode())
"""


def looked(subject: str) -> Value:
    """What is seen of a module: ``values`` of ``runtime/jax_values``."""
    return once("jax", _look)[subject]


def variables() -> dict[str, str]:
    """Of a process with four devices, and tfdyno as it is here."""
    return {
        **os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "-1",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4", "PYTHONPATH": str(SRC),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }  # fmt: skip


def _look() -> Value:
    return told_by(CHILD)


def told_by(code: str, *, folder: Path | None = None, **more: str) -> Value:
    """Run Python on JAX, and return the JSON that it writes to the number of a file in ``argv``.

    Args:
        code: Of the process.
        folder: Where it runs.
        more: Variables beside ``variables()``.
    """
    read, write = os.pipe()
    done = subprocess.run(
        [sys.executable, "-c", code, str(write)], env={**variables(), **more}, pass_fds=[write],
        capture_output=True, text=True, timeout=600, check=False, cwd=folder,
    )  # fmt: skip
    os.close(write)
    with os.fdopen(read) as found:
        text = found.read()
    assert done.returncode == 0, done.stderr
    return json.loads(text)
