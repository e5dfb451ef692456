"""Trainings by ``tfdyno.fit`` in a process of the user's: those of a test file share one child."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.runtime.forks import forked

if TYPE_CHECKING:
    from pathlib import Path

COMMON = '''
import contextlib, io, json, os, signal, sys
import keras, numpy as np, tensorflow as tf
import tfdyno

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
rng = np.random.default_rng(0)
x = rng.normal(size=(64, 8)).astype("float32")
y = (x.sum(1, keepdims=True) > 0).astype("float32")
NUMBER = 7

def model(optimizer="adam", **how):
    keras.utils.set_random_seed(1)
    layers = [keras.Input((8,)), keras.layers.Dense(8, "relu"), keras.layers.Dropout(0.3),
              keras.layers.Dense(1, "sigmoid")]
    made = keras.Sequential(layers, name="net")
    made.compile(optimizer, "binary_crossentropy", metrics=["accuracy"], **how)
    return made

def said(call):
    try:
        call()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"

def quiet(*given, **options):
    return tfdyno.fit(*given, progress=False, **options)

def plain_works(net):
    own = [name for name in vars(net) if name.startswith(("make_", "_maybe_symbolic"))]
    loss = net.fit(x, y, epochs=1, verbose=0).history["loss"][0]
    return not own and bool(np.isfinite(loss))

class At(keras.callbacks.Callback):
    """Does something after a batch, counted over all epochs."""
    def __init__(self, batch, act):
        super().__init__()
        self.left, self.act = batch, act
    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if self.left == 0:
            self.act()

def interrupt(times):
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)

def fail():
    raise LookupError("of the callback")
'''
END = """
import json
with open("found.json", "w") as file:
    json.dump({name: globals()[name]() for name in sys.argv[1:]}, file)
"""


def fitted(folder: Path, cases: str, *names: str) -> dict[str, Any]:
    """What the named functions of ``cases`` return, by name, after real trainings in ``folder``."""
    forked(COMMON + cases + END, *names, folder=folder)
    found: dict[str, Any] = json.loads((folder / "found.json").read_text())
    return found
