"""A real cluster on this machine, a chief with 2 workers and 1 parameter server, started once."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.runtime.forks import NO_GPU
from tests.runtime.once import once

LIMIT_S = 1600
PARENT = """
import json, os, subprocess, sys

cluster = json.loads(os.environ["CLUSTER"])
serve = "from tfdyno.runtime.recipe.parameter_server import serve_forever; serve_forever()"

def start(role, index, code, **more):
    task = {"cluster": cluster, "task": {"type": role, "index": index}}
    return subprocess.Popen([sys.executable, "-c", code],
                            env={**os.environ, "TF_CONFIG": json.dumps(task), **more})

servers = [start(role, n, serve) for role in ("ps", "worker") for n in range(len(cluster[role]))]
pids = " ".join(str(server.pid) for server in servers)
sys.exit(start("chief", 0, sys.argv[1], SERVERS=pids).wait(1500))  # ends what hangs
"""
CHIEF = """
import contextlib, json, os, signal, socket, time
import keras, numpy as np, tensorflow as tf
from tfdyno.core.base.errors import TfdynoError
from tfdyno.runtime.recipe import parameter_server
from tfdyno.runtime.base.tensorflow_internals import outside_scope
from tfdyno.runtime.recipe.scheduled_step import ScheduledSteps, _worker_offset
from tfdyno.runtime.recipe.steps_under_way import unreachable

result, config = {}, json.loads(os.environ["TF_CONFIG"])

def said(call):
    try:
        call()
    except TfdynoError as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def elsewhere(role="chief", **cluster):
    changed = {**config, "cluster": {**config["cluster"], **cluster},
               "task": {"type": role, "index": 0}}
    os.environ["TF_CONFIG"] = json.dumps(changed)

elsewhere(worker=["127.0.0.1:1"])
result["incomplete"] = said(lambda: parameter_server.make_strategy(wait_s=0.0))
elsewhere(ps=[])
result["without"] = said(parameter_server.make_strategy)
with socket.create_server(("127.0.0.1", 0)) as held:
    elsewhere("worker", worker=["127.0.0.1:%d" % held.getsockname()[1]])
    result["taken"] = said(parameter_server.serve_forever)
elsewhere()
strategy = parameter_server.make_strategy()

rng = np.random.default_rng(0)
x = rng.normal(size=(200, 8)).astype("float32")
y = (x.sum(1) > 0).astype("float32")[:, None]
data = dict(x=x, y=y, batch_size=16, epochs=3, verbose=0, shuffle=False,
            validation_data=(x[:40], y[:40]), class_weight={0: 1.0, 1: 2.0})

def network(optimizer, dropout=0.0, policy="float32", **how):
    layers = [keras.layers.Dense(16, "relu", kernel_regularizer="l2", dtype=policy),
              keras.layers.BatchNormalization(dtype=policy)]
    layers += [keras.layers.Dropout(dropout)] if dropout else []
    model = keras.Sequential([*layers, keras.layers.Dense(1, "sigmoid")])
    model.compile(optimizer, "binary_crossentropy", metrics=["accuracy"], **how)
    return model

def distributed(*given, **how):
    with strategy.scope():
        return network(*given, **how)

result["plain"] = said(lambda: distributed("sgd").fit(**data))
result["outside"] = said(lambda: ScheduledSteps(network("sgd"), strategy))
@tf.function
def seed_of_worker():
    return _worker_offset(tf.int64)

workers = [tf.distribute.coordinator.ClusterCoordinator(strategy).schedule(seed_of_worker)
           for _ in range(20)]
seeds = sorted({int(value.fetch()[0]) for value in workers})
made_before = keras.optimizers.SGD()
result["optimizer"] = said(lambda: ScheduledSteps(distributed(made_before), strategy))

def both(make, policy):
    "One step at a time: what Keras does on one device."
    keras.utils.set_random_seed(1)
    with strategy.scope():
        ours = network(make(), policy=policy)
    keras_own = network(make(), policy=policy)
    steps = ScheduledSteps(ours, strategy)
    steps.build((tf.TensorSpec((None, 8)), tf.TensorSpec((None, 1))))
    steps.under_way.most = 0
    keras_own.build((None, 8))
    keras_own.jit_compile = False
    keras_own.set_weights(ours.get_weights())
    history, expected = ours.fit(**data).history, keras_own.fit(**data).history
    pairs = zip(ours.get_weights(), keras_own.get_weights())
    return {"names": list(history), "expected": list(expected),
            "apart": max(float(np.abs(np.subtract(history[n], expected[n])).max())
                         for n in expected),
            "weights_apart": max(float(np.abs(a - b).max()) for a, b in pairs),
            "updates": [int(m.optimizer.iterations) for m in (ours, keras_own)]}

average = dict(use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=5, global_clipnorm=1.0)
scaled = lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(1e-2), 2.0**20)
result["average"] = both(lambda: keras.optimizers.SGD(0.1, momentum=0.9, **average), "float32")
result["float16"] = both(scaled, "mixed_float16")

class Seen(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.epochs, self.batches, self.losses = [], [], []
    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append([epoch, sorted(logs)])
    def on_train_batch_end(self, batch, logs=None):
        self.batches.append(batch)
        self.losses.append(float(logs["loss"]))

keras.utils.set_random_seed(1)
seen = Seen()
with strategy.scope():  # as in a script that does all in it
    model = network(keras.optimizers.Adam(1e-2), dropout=0.2)
    steps = ScheduledSteps(model, strategy)
    with outside_scope():
        history = model.fit(**{**data, "epochs": 6}, callbacks=[seen]).history
    evaluated = model.evaluate(x[:40], y[:40], verbose=0, return_dict=True)
    predicted = model.predict(x[:40], verbose=0)
model.save("model.keras")
again = keras.models.load_model("model.keras")
with strategy.scope(), outside_scope():
    again_said = again.evaluate(x[:40], y[:40], verbose=0, return_dict=True)
result["together"] = {
    "history": history, "epochs": seen.epochs, "batches": seen.batches, "losses": seen.losses,
    "updates": int(model.optimizer.iterations), "batch_count": int(steps.batch_count),
    "evaluated": evaluated, "loaded": again_said,
    "predicted_apart": float(np.abs(predicted - again.predict(x[:40], verbose=0)).max()),
    "where": model.weights[0]._value.device,
    "drawn": [int(v.numpy()[1]) for v in model.variables if "seed_generator" in v.path],
    "seeds": seeds,
}

def generator():
    while True:
        for start in range(0, 200, 16):
            yield x[start:start + 16], y[start:start + 16]

model, seen = distributed("adam", steps_per_execution=4), Seen()
ScheduledSteps(model, strategy)
model.fit(generator(), epochs=2, steps_per_epoch=12, verbose=0, callbacks=[seen])
first = {"updates": int(model.optimizer.iterations), "batches": seen.batches}
steps = ScheduledSteps(model, strategy)  # a second call of fit takes it over again
model.fit(x, y, batch_size=16, verbose=0)
result["generator"] = {**first, "later": int(model.optimizer.iterations)}
steps.give_back()
result["given_back"] = said(lambda: model.fit(x, y, verbose=0))

class Two(keras.Model):
    "Two optimizers, and logs that are no metrics."
    def __init__(self):
        super().__init__()
        self.a, self.b, self.mean = keras.layers.Dense(4), keras.layers.Dense(1), None
        self.a.build((None, 8)), self.b.build((None, 4))
        self.second = keras.optimizers.Adam()
        self.second.build(self.b.trainable_variables)
        self.built = True
    def call(self, x):
        return self.b(tf.recompute_grad(lambda z: self.a(z))(x))
    def train_step(self, batch):
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_mean((self(batch[0]) - batch[1]) ** 2)
        for optimizer, part in ((self.optimizer, self.a), (self.second, self.b)):
            gradients = tape.gradient(loss, part.trainable_variables)
            optimizer.apply_gradients(zip(gradients, part.trainable_variables))
        return {"own": loss, "parts": tf.stack([loss, loss])}

with strategy.scope():
    model = Two()
    model.compile("adam")
ScheduledSteps(model, strategy)
history = model.fit(x, y, batch_size=16, epochs=4, verbose=0).history
result["custom"] = {"own": [float(v) for v in history["own"]],
                    "shape": list(history["parts"][0].shape),
                    "updates": [int(o.iterations) for o in (model.optimizer, model.second)]}

class Fails(keras.layers.Layer):
    def call(self, x):
        tf.debugging.assert_less(tf.reduce_max(x), 1.0, message="too large here")
        return x

with strategy.scope():
    model = keras.Sequential([Fails(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
ScheduledSteps(model, strategy)
result["user"] = said(lambda: model.fit(x, y, verbose=0))

model = distributed("sgd")
steps = ScheduledSteps(model, strategy)
pids = [int(pid) for pid in os.environ["SERVERS"].split()]

class Kills(keras.callbacks.Callback):
    def __init__(self, number, pid):
        super().__init__()
        self.number, self.pid = number, pid
    def on_train_batch_end(self, batch, logs=None):
        if batch == self.number:
            os.kill(self.pid, signal.SIGKILL)
            self.number = -1

model.fit(x, y, batch_size=4, epochs=2, verbose=0, callbacks=[Kills(20, pids[2])])
result["one_left"] = {"updates": int(model.optimizer.iterations),
                      "missing": unreachable(steps.under_way._cluster)}
steps.under_way.patience_s = 2.0
result["none_left"] = said(lambda: model.fit(x, y, verbose=0, callbacks=[Kills(0, pids[1])]))
with open("result.json", "w") as file:
    json.dump(result, file)
os._exit(0)
"""


@functools.cache
def trained() -> dict[str, Any]:
    """What the chief found; its servers have ended by themselves."""
    found, errors = once("cluster", _run)
    assert not errors, errors
    return found


def _run() -> tuple[dict[str, Any], str]:
    """What was found, and what went wrong."""
    with tempfile.TemporaryDirectory() as name:
        environment = {
            **os.environ,
            **NO_GPU,
            "KERAS_BACKEND": "tensorflow",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "CLUSTER": json.dumps(addresses({"chief": 1, "worker": 2, "ps": 1})),
        }
        parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, CHIEF],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=name,
            env=environment, start_new_session=True,
        )  # fmt: skip
        try:
            # The pipe ends when the servers have, which nobody but they themselves ends.
            output, _ = parent.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired as error:
            return {}, f"not done after {LIMIT_S} s: {(error.output or b'')[-4000:]!r}"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGKILL)
        if parent.returncode:
            return {}, _without_echoes(output)[-6000:]
        return json.loads((Path(name) / "result.json").read_text()), ""


def _without_echoes(output: str) -> str:
    """Without the lines in which TensorFlow says of each function that it could not remove it."""
    echoes = ("E0000", "Additional GRPC", ":UNKNOWN", "This could happen if the remote")
    return "\n".join(line for line in output.splitlines() if not line.startswith(echoes))


def addresses(roles: dict[str, int]) -> dict[str, list[str]]:
    """Free ports of this machine for a number of processes of each role."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(sum(roles.values()))]
    ports = iter([one.getsockname()[1] for one in sockets])
    for one in sockets:
        one.close()
    return {role: [f"127.0.0.1:{next(ports)}" for _ in range(n)] for role, n in roles.items()}
