"""Scripts with something planted in their steps, and what the watch of them finds."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tests.runtime.benches import in_tensorflow
from tests.runtime.once import once

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

BEGIN = """
import gc
import keras
import numpy as np
import tensorflow as tf
from tfdyno.runtime.diagnose.watch import Watching

STEPS = 60
kept, traced_s = [], {}
x = tf.ones((32, 8))
w = tf.Variable(tf.ones((8, 4)))

def watched(step, count=STEPS, **how):
    with Watching(**how) as watching:
        for number in range(count):
            step(number)
            watching.step()
        traced_s.update(watching.traces.step_s)
        return watching.traces.facts(), watching.growth.facts(), watching.cost_s
"""
GROWING = {
    "healthy": """
@tf.function
def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.matmul(x, w) ** 2)
    w.assign_sub(0.01 * tape.gradient(loss, w))
    return loss
history = []
found = watched(lambda number: history.append(float(train(x))))
""",
    "tensors": """
def step(number):
    kept.append(tf.random.normal((512, 512)))
found = watched(step)
""",
    "local": """
def main():
    outputs = {}
    def step(number):
        outputs[number] = tf.random.normal((512, 512))
    return watched(step)
found = main()
""",
    "scalars": """
def step(number):
    kept.append(tf.reduce_mean(x))
found = watched(step)
""",
    "floats": """
def step(number):
    kept.append(float(tf.reduce_mean(x)))
found = watched(step)
""",
    "logs": """
class Keep(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.rows = []
    def on_train_batch_end(self, batch, logs=None):
        self.rows.append({"batch": batch, "weights": self.model.get_weights()})
model = keras.Sequential([keras.Input((256,)), keras.layers.Dense(128)])
model.compile("sgd", "mse", jit_compile=False)
class Steps(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        watching.step()
callbacks = [Keep(), Steps()]
rows = np.ones((STEPS * 8, 256), "float32"), np.ones((STEPS * 8, 128), "float32")
with Watching(callbacks=callbacks, model=model) as watching:
    model.fit(*rows, batch_size=8, verbose=0, callbacks=callbacks)
    found = watching.traces.facts(), watching.growth.facts(), watching.cost_s
""",
    "array": """
def step(number):
    global joined
    joined = np.concatenate([joined, np.ones((64, 64))])
joined = np.ones((1, 64))
found = watched(step)
""",
    "iterators": """
data = tf.data.Dataset.range(10_000).shuffle(10_000)
def step(number):
    batches = iter(data)
    next(batches)
    kept.append(batches)
found = watched(step, 40)
""",
    "new_functions_kept": """
def step(number):
    train = tf.function(lambda x: tf.matmul(x, w))
    train(x)
    kept.append(train)
found = watched(step, 40)
""",
}
TRACED = {
    "new_function": """
def step(number):
    train = tf.function(lambda x: tf.matmul(x, w))
    train(x)
found = watched(step, 8)
""",
    "last_batch": """
@tf.function
def train(images, labels):
    return tf.reduce_sum(tf.matmul(images, w) - labels)
def step(number):
    rows = 31 if number % 10 == 9 else 32
    train(tf.ones((rows, 8)), tf.ones((rows, 4)))
found = watched(step, 20)
""",
    "number": """
@tf.function
def train(x, step):
    return tf.matmul(x, w) * step
found = watched(lambda number: train(x, number), 12)
""",
    "dtype": """
@tf.function
def train(batch):
    return tf.cast(batch["image"], tf.float32) * 2.0
def step(number):
    dtype = tf.float64 if number == 5 else tf.float32
    train({"image": tf.ones((4, 4), dtype)})
found = watched(step, 10)
""",
    "structure": """
@tf.function
def train(parts):
    return tf.add_n(parts)
found = watched(lambda number: train([x] * (2 if number < 5 else 3)), 10)
""",
    "before": """
@tf.function
def train(x, k):
    return x * k
train(x, 1)
found = watched(lambda number: train(x, 1 if number < 5 else 2), 10)
""",
    "keras": """
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
model.compile("sgd", "mse", jit_compile=False)
rows = np.ones((100, 8), "float32"), np.ones((100, 4), "float32")
class Steps(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        watching.step()
with Watching(model=model) as watching:
    model.fit(*rows, batch_size=32, epochs=4, verbose=0, callbacks=[Steps()],
              validation_data=rows)
    model.evaluate(*rows, verbose=0)
    found = watching.traces.facts(), watching.growth.facts(), watching.cost_s
""",
    "compiled_again": """
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
rows = np.ones((64, 8), "float32"), np.ones((64, 4), "float32")
def step(number):
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(*rows, batch_size=32, verbose=0)
found = watched(step, 4)
""",
    "xla": """
@tf.function(jit_compile=True, reduce_retracing=True)
def train(x):
    return tf.reduce_sum(x)
found = watched(lambda number: train(tf.ones((4 + number, 8))), 6)
""",
    "dataset": """
def double(v):
    return 2 * v
def step(number):
    for _ in tf.data.Dataset.range(3).map(double):
        pass
found = watched(step, 6)
""",
    "predict": """
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
found = watched(lambda number: model.predict(np.ones((4, 8)), verbose=0), 4)
""",
    "instances": """
class Layer:
    @tf.function
    def call(self, x):
        return x + 1
layers = [Layer() for _ in range(5)]
def step(number):
    for layer in layers:
        layer.call(x)
found = watched(step, 6)
""",
}
RUN = """
import runpy, sys, tempfile
from pathlib import Path
from tfdyno.core.base.codec import to_builtins
from tfdyno.runtime.diagnose.watched_traces import FUNCTION_TYPE
folder = Path(tempfile.mkdtemp())
originals = [getattr(FUNCTION_TYPE, n) for n in ("__init__", "__call__", "get_concrete_function")]
result, spaces = {{}}, []
import time
for name, code in {scripts!r}.items():
    began = time.perf_counter()
    (folder / f"{{name}}.py").write_text({begin!r} + code)
    space = runpy.run_path(str(folder / f"{{name}}.py"), run_name="__main__")
    spaces.append(space)  # TensorFlow 2.21 may hang where 60 iterators are deleted together
    retraces, growth, cost_s = space["found"]
    took_s = time.perf_counter() - began
    told = {{"retraces": to_builtins(retraces), "growth": to_builtins(growth)}}
    steps = {{str(step): s for step, s in space["traced_s"].items()}}
    result[name] = {{**told, "cost_s": cost_s, "took_s": took_s, "traced_s": steps}}
result["restored"] = originals == [
    getattr(FUNCTION_TYPE, n) for n in ("__init__", "__call__", "get_concrete_function")]
import tensorflow as tf, time
from tfdyno.runtime.diagnose.watch import Watching
@tf.function
def plain(v):
    return v
one = tf.constant(1.0)
def per_call_s():
    best = 1.0
    for _ in range(9):
        began = time.thread_time()
        for _ in range(2000):
            plain(one)
        best = min(best, (time.thread_time() - began) / 2000)
    return best
plain(one)
without_s = per_call_s()
with Watching() as watching:
    result["added_per_call_s"] = per_call_s() - without_s
"""


@functools.cache
def grown() -> dict[str, Any]:
    """What the watch found in the scripts of ``GROWING``, by name."""
    return dict(once("watched_growing", lambda: _of(GROWING)))


@functools.cache
def traced() -> dict[str, Any]:
    """What the watch found in the scripts of ``TRACED``, by name."""
    return dict(once("watched_traced", lambda: _of(TRACED)))


def _of(scripts: dict[str, str]) -> Value:
    return in_tensorflow(RUN.format(scripts=scripts, begin=BEGIN))


def line_of(script: str, text: str) -> str:
    """``name.py:12``, where the text first stands in a script."""
    lines = (BEGIN + {**GROWING, **TRACED}[script]).splitlines()
    return f"{script}.py:{next(n for n, line in enumerate(lines, 1) if text in line)}"
