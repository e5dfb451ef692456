"""Looks at small trainings of Keras on JAX with planted causes, one after the other in a process.

JAX starts slowly and does not survive a fork, so that one child looks at all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.runtime.jaxes import variables
from tests.runtime.looks import SHORT
from tests.runtime.once import once

from tfdyno.core.base.codec import from_builtins
from tfdyno.core.measure.step_facts import StepFacts

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

START = """import time
import keras
import numpy as np
rng = np.random.default_rng(0)
x = rng.normal(size=(640, 64)).astype("float32")
y = x.sum(axis=1)
def made(units=64):
    layers = [keras.Input((64,)), keras.layers.Dense(units, "relu"), keras.layers.Dense(1)]
    return keras.Sequential(layers)
def trained(model, x, y=None, **more):
    model.compile("adam", "mse", run_eagerly=more.pop("run_eagerly", False))
    model.fit(x, y, verbose=0, epochs=2, **more)
"""
"""Line 13 is the first behind it."""
SCRIPTS = {
    "clean": """trained(made(2048), np.tile(x, (8, 1)), np.tile(y, 8), batch_size=512)
""",
    "generator": """def batches():
    while True:
        time.sleep(0.03)
        yield x[:64], y[:64]
trained(made(), batches(), steps_per_epoch=20)
""",
    "pydataset": """class Rows(keras.utils.PyDataset):
    def __len__(self):
        return 20
    def __getitem__(self, number):
        time.sleep(0.03)
        return x[:64], y[:64]
trained(made(), Rows())
""",
    "ragged": """def batches():
    for length in range(20, 400):
        yield rng.normal(size=(8, length, 8)).astype("float32"), y[:8]
layers = [keras.Input((None, 8)), keras.layers.Dense(4), keras.layers.GlobalMaxPooling1D()]
trained(keras.Sequential([*layers, keras.layers.Dense(1)]), batches(), steps_per_epoch=20)
""",
    "eager": """trained(made(), x, y, batch_size=64, run_eagerly=True)
""",
    "turns": """turn = keras.layers.RandomRotation(0.1, name="turn")
layers = [keras.Input((64,)), keras.layers.Reshape((8, 8, 1)), turn]
layers += [keras.layers.Flatten(), keras.layers.Dense(1)]
trained(keras.Sequential(layers), x, y, batch_size=64)
""",
    "predicts": """class Watch(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.model.predict(x, batch_size=16, verbose=0)
trained(made(), x, y, batch_size=64, callbacks=[Watch()])
""",
    "sleeps": """class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.05)
trained(made(), x, y, batch_size=64, callbacks=[Slow()])
""",
    "keeps": """import jax.numpy as jnp
kept = []
class Keep(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        kept.append(jnp.ones((64, 1024)) * batch)
trained(made(), x, y, batch_size=64, callbacks=[Keep()])
""",
    "calls_python": """import jax
def host(value):
    time.sleep(0.03)
    return np.asarray(value)
class Host(keras.layers.Layer):
    def call(self, value):
        value = jax.lax.stop_gradient(value)
        return jax.pure_callback(host, jax.ShapeDtypeStruct(value.shape, value.dtype), value)
layers = [keras.Input((64,)), Host(), keras.layers.Dense(1)]
trained(keras.Sequential(layers), x, y, batch_size=64)
""",
    "reports": """class Report(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.loss = float(logs["loss"])
class Own(Report):
    async_safe = True
trained(made(), x, y, batch_size=64, callbacks=[Report(), Own()], validation_data=(x, y))
""",
    "several": """model = made()
model.compile("adam", "mse", steps_per_execution=3)
model.fit(x, y, batch_size=64, epochs=2, verbose=0)
""",
    "ends": """def batches():
    for _ in range(4):
        yield x[:64], y[:64]
trained(made(), batches())
""",
    "loop": """model = made()
model.compile("adam", "mse")
for _ in range(50):
    model.train_on_batch(x[:64], y[:64])
""",
}
CHILD = """
import json, os, sys, tempfile, traceback
from pathlib import Path
os.chdir(tempfile.mkdtemp())
from tfdyno.core.base.codec import to_builtins
from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.messages.diagnose import Limits, LookAtSteps
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.runtime.diagnose.child import handle
# The scripts have arguments of their own.
told, scripts, limits = map(json.loads, sys.argv[1:])
found = {}
for name, code in scripts.items():
    Path(f"{name}.py").write_text(code)
    asked = LookAtSteps(
        workload=parse_reference(f"{name}.py", mode="train"), recipe=Recipe(),
        limits=Limits(**limits), backend="jax", seen_gpus=int(name == "clean"),
    )
    try:
        found[name] = to_builtins(handle(asked, lambda line: None))
    except TfdynoError as error:
        found[name] = {"refused": str(error)}
    except Exception:
        found[name] = {"failed": traceback.format_exc()}
os.write(told, json.dumps(found).encode())
"""


def answer(name: str) -> dict[str, Any]:
    """What a look at one of the scripts brought, as JSON has it."""
    found: dict[str, Any] = once("jax_looks", _look)[name]
    return found


def facts(name: str) -> StepFacts:
    """What was seen of one of the scripts."""
    found = answer(name)
    assert "facts" in found, found
    return from_builtins(found["facts"], StepFacts)


def _look() -> Value:
    read, write = os.pipe()
    scripts = {name: START + code for name, code in SCRIPTS.items()}
    words = [sys.executable, "-c", CHILD, str(write), json.dumps(scripts), json.dumps(SHORT)]
    with os.fdopen(read) as found:
        # More than a pipe holds may come: it is read while the child writes.
        child = subprocess.Popen(
            words, env={**variables(), "XLA_FLAGS": ""}, pass_fds=[write],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        os.close(write)
        text = found.read()
    _, errors = child.communicate(timeout=600)
    assert child.returncode == 0, errors
    return json.loads(text)
