"""A small training of two nodes on this machine, as ``tfdyno launch`` plans it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tfdyno.core.cluster.launch_plan import LaunchPlan

SCRIPT = """
import json
import os
import sys
import time
import keras
import numpy as np

rank = json.loads(os.environ.get("TF_CONFIG", '{"task": {"index": 0}}'))["task"]["index"]

class Trouble(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        self.began = time.monotonic()

    def on_train_batch_end(self, batch, logs=None):
        took_s = time.monotonic() - self.began
        time.sleep(float(os.environ.get("PACE_S", "0")))
        if "slow" in sys.argv and rank == 1:  # as long again, however fast this machine is
            time.sleep(min(max(0.06, took_s), 1.0))

    def on_epoch_end(self, epoch, logs=None):
        if "enough" in sys.argv and rank == 1 and epoch == 1:
            self.model.stop_training = True

    def on_epoch_begin(self, epoch, logs=None):
        if "drift" in sys.argv and rank == 1:
            for variable in self.model.trainable_variables:
                for own in variable.value.values:
                    own.assign_add(0.01 * np.ones(own.shape))

x = np.random.default_rng(0).normal(size=(320, 8)).astype("float32")
y = x.sum(axis=1, keepdims=True)
model = keras.Sequential([
    keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dropout(0.2),
    keras.layers.Dense(1),
])
model.compile("adam", "mse")
model.fit(x, y, batch_size=32, epochs=3, callbacks=[Trouble()])
if "late" in sys.argv:
    model.evaluate(x, y, verbose=0)
    if rank == 1:
        with open("part", "w") as file:
            file.write(str(os.getpid()))
        os.rename("part", "pid")
    while not os.path.exists("pid"):
        time.sleep(0.1)
    time.sleep(1.0)
    os.kill(int(open("pid").read()), 0)
    if rank == 0:
        open("still-there", "w").close()
"""
OPTIONS = ("--set", "seed=7", "--checkpoint-every", "3")
SRC = str(Path(__file__).parents[2] / "src")


def plan(folder: Path, *words: str, pace_s: float = 0.0, **given: Any) -> LaunchPlan:
    (folder / "train.py").write_text(SCRIPT)
    basic: dict[str, Any] = {
        "engine": "local", "name": "small", "reference": "train.py", "nodes": 2,
        "python": sys.executable, "folder": str(folder), "output": str(folder / "run"),
        "options": OPTIONS, "script_arguments": words,
        "environment": (("PYTHONPATH", SRC), ("PACE_S", str(pace_s))),
    }  # fmt: skip
    return LaunchPlan(**{**basic, **given})
