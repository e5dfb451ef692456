"""Small ``tf.data`` pipelines, and what the tests of the input modules ask of them.

All is asked in two children: one runs every epoch, the other resumes. So a resumed order is really
that of a fresh process.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.runtime.benches import in_tensorflow
from tests.runtime.once import once

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

PIPELINES = """
import os, random, time
import keras, numpy as np, tensorflow as tf
from keras.src.trainers.data_adapters import get_data_adapter
from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.recipe.recipe import InputOptions
from tfdyno.runtime.workload import input_options, input_rebuild, input_stages
from tfdyno.runtime.train import epochs

D, AUTO = tf.data.Dataset, tf.data.AUTOTUNE

def numbers():
    return D.range(12)

def draw(v):
    return v + tf.random.uniform([], 0, 1000, tf.int64)

def double(v):
    return v * 2

def parity(v):
    return v % 2

class Drawn(keras.utils.PyDataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        return np.arange(3) + 10 * i + np.random.randint(1000) * 100

def drawn():
    for _ in range(6):
        yield random.random()

def generator():
    made = tf.random.Generator.from_seed(3)
    return numbers().map(lambda v: v + made.uniform([], 0, 100, tf.int64))

def layer():
    flip = keras.layers.RandomTranslation(0.5, 0.5, seed=3)
    images = np.arange(48, dtype="float32").reshape(3, 4, 4, 1)
    return D.from_tensor_slices(images).batch(3).map(lambda v: flip(v, training=True))

def counter():
    count = tf.Variable(0, dtype=tf.int64)
    def add(v):
        count.assign_add(1)
        return v + count
    return numbers().map(add)

def captured():
    outer = numbers().shuffle(12)
    return D.range(2).flat_map(lambda _: outer)

def table():
    keys = tf.lookup.KeyValueTensorInitializer(tf.range(12, dtype=tf.int64), tf.range(12) * 3)
    found = tf.lookup.StaticHashTable(keys, -1)
    return numbers().shuffle(12).map(found.lookup)

def of_keras(shuffle):
    return get_data_adapter(np.arange(12), batch_size=4, shuffle=shuffle).get_tf_dataset()

def inner(v):
    return D.range(4).map(lambda w: w + 10 * v)

def inner_shuffle(v):
    return D.range(4).shuffle(4).map(lambda w: w + 10 * v)

RAGGED = lambda: numbers().map(lambda v: tf.range(v)).shuffle(12)
MADE = {
    "shuffle": lambda: numbers().shuffle(12).batch(5).prefetch(2),
    "shuffle_small": lambda: numbers().shuffle(3).batch(5, num_parallel_calls=2),
    "shuffle_fixed_repeat": lambda:
        numbers().shuffle(12, reshuffle_each_iteration=False).repeat(2),
    "shuffle_shuffle": lambda: numbers().shuffle(4).map(double).shuffle(12),
    "random_map": lambda: numbers().shuffle(12).map(draw).batch(4),
    "parallel_map": lambda: numbers().shuffle(12).map(double, num_parallel_calls=4),
    "parallel_draws": lambda: numbers().map(draw, num_parallel_calls=4),
    "shuffle_repeat": lambda: numbers().shuffle(12).prefetch(1).repeat(2).batch(4),
    "repeat_shuffle": lambda: numbers().repeat(2).shuffle(12),
    "shuffle_cache": lambda: numbers().shuffle(12).cache(),
    "draws_cache": lambda: numbers().map(draw).cache().shuffle(12),
    "work_shuffle": lambda: numbers().map(double).batch(2).shuffle(12),
    "concatenate": lambda: numbers().shuffle(12).concatenate(numbers().shuffle(12)),
    "zip": lambda: D.zip((numbers().map(double).shuffle(12), numbers().filter(parity_is_even))),
    "take_skip": lambda: numbers().map(double).shuffle(5).enumerate().take(9).skip(1).shard(2, 1),
    "interleave": lambda: D.range(3).shuffle(3).interleave(inner, cycle_length=2),
    "interleave_inner": lambda: D.range(3).shuffle(3).interleave(inner_shuffle),
    "parallel_interleave": lambda:
        D.range(3).interleave(inner, num_parallel_calls=2, cycle_length=3).shuffle(4),
    "chosen_interleave": lambda: D.range(5).interleave(inner, num_parallel_calls=2),
    "flat_draws": lambda: D.range(3).flat_map(lambda v: D.from_tensors(tf.random.uniform([3]))),
    "keras_arrays": lambda: of_keras(True),
    "keras_in_order": lambda: of_keras(False),
    "generator": lambda: D.from_generator(drawn, output_signature=tf.TensorSpec([], tf.float32)),
    "py_dataset": lambda: get_data_adapter(Drawn(), shuffle=True).get_tf_dataset(),
    "numpy_draws": lambda: numbers().map(
        lambda v: tf.numpy_function(lambda w: w + np.random.randint(1000), [v], tf.int64)),
    "python_pure": lambda: numbers().shuffle(12).map(
        lambda v: tf.py_function(double, [v], tf.int64)),
    "tf_generator": generator, "keras_layer": layer, "counter": counter, "captured": captured,
    "table": table,
    "random_dataset": lambda: D.zip((numbers(), D.random(3, rerandomize_each_iteration=True))),
    "sampled": lambda: D.sample_from_datasets(
        [numbers().shuffle(12), numbers().map(double)], [0.5, 0.5], seed=2),
    "group": lambda: numbers().shuffle(12).group_by_window(
        parity, lambda key, window: window.batch(3), 3),
    "window": lambda: numbers().shuffle(12).window(3).flat_map(lambda w: w.batch(3)),
    "unbatch": lambda: numbers().map(double).batch(4).shuffle(3).unbatch(),
    "counted": lambda: numbers().filter(parity_is_even).apply(
        tf.data.experimental.assert_cardinality(6)).shuffle(6).map(double).batch(4),
    "padded": lambda: RAGGED().padded_batch(3),
    "ordered_batch": lambda:
        RAGGED().padded_batch(3).unbatch().batch(3, num_parallel_calls=2, deterministic=True),
    "scan": lambda: numbers().map(double).shuffle(12).scan(
        np.int64(0), lambda sum, v: (sum + v, sum + v)),
    "files": lambda: D.list_files(FILES, seed=3).interleave(
        lambda name: tf.data.TextLineDataset(name).take(3), cycle_length=3, num_parallel_calls=2),
    "snapshot": lambda: numbers().shuffle(12).snapshot(SNAPSHOT),
}

def parity_is_even(v):
    return v % 2 == 0

def chain(number):
    stages = [
        lambda d: d.shuffle(5), lambda d: d.map(double), lambda d: d.map(draw),
        lambda d: d.repeat(2), lambda d: d.filter(parity_is_even), lambda d: d.prefetch(2),
        lambda d: d.batch(2).unbatch(), lambda d: d.interleave(inner, cycle_length=3),
        lambda d: d.cache(), lambda d: d.concatenate(D.range(3).shuffle(3)),
        lambda d: d.shuffle(4, reshuffle_each_iteration=False), lambda d: d.take(7),
        lambda d: D.zip((d, D.range(9).shuffle(9))).map(lambda a, b: a + 100 * b),
        lambda d: d.map(double, num_parallel_calls=2, deterministic=True),
    ]
    chosen = random.Random(number).choices(stages, k=5)
    made = D.range(8)
    for stage in chosen:
        made = stage(made)
    return made

CHAINS = {f"chain {number}": lambda number=number: chain(number) for number in range(20)}

def made(name):
    keras.utils.set_random_seed(3)
    return {**MADE, **CHAINS}[name]()

def plain(part):
    values = np.asarray(part)
    return (values.astype(str) if values.dtype.kind in "SO" else values).tolist()

def flat(dataset):
    return [plain(part) for row in dataset for part in tf.nest.flatten(row)]
"""
FILES = "import tempfile\nFILES = {files!r}\nSNAPSHOT = tempfile.mkdtemp()\n"
EPOCHS = """
result = {}
for name in [*MADE, *CHAINS]:
    dataset = made(name)
    result[name] = [flat(dataset) for _ in range(3)]
"""
RESUMED = """
result = {}
for name in [*MADE, *CHAINS]:
    dataset = made(name)
    why = epochs.why_full_replay(dataset)
    for _ in range(2):
        iter(dataset)
    after_iterators = flat(dataset)
    dataset = made(name)
    for _ in range(2):
        flat(dataset)
    result[name] = {
        "why": why, "after": after_iterators,
        "replayed": flat(dataset), "not_repeatable": epochs.not_repeatable(dataset),
        "titles": [input_stages.title(stage) for stage in input_stages.walk(dataset)],
    }
"""


def asked(code: str) -> Value:
    """What ``code`` leaves in ``result``, run after the pipelines are defined."""
    hlo = Path(__file__).parents[1] / "kernels" / "hlo"
    files = FILES.format(files=f"{hlo}/test_*.py")
    return in_tensorflow(f"{files}{PIPELINES}{code}")


@functools.cache
def epochs() -> dict[str, list[list[Any]]]:
    """The elements of three epochs of each pipeline."""
    return dict(once("epochs", lambda: asked(EPOCHS)))


@functools.cache
def resumed() -> dict[str, dict[str, Any]]:
    """What a fresh process finds of each pipeline, and its third epoch in two ways."""
    return dict(once("resumed", lambda: asked(RESUMED)))
