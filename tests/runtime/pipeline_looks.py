"""Pipelines by themselves, and the parts of a look that read them, seen in one TensorFlow."""

from __future__ import annotations

import functools
from typing import Any

from tests.runtime.benches import in_tensorflow
from tests.runtime.once import once

CODE = """
import dataclasses, tempfile, time
from pathlib import Path
from types import SimpleNamespace
import numpy as np, tensorflow as tf
from tfdyno.runtime.diagnose import input as diagnose_input
from tfdyno.core.messages.diagnose import Limits
from tfdyno.runtime.diagnose.held import held_dataset, leading, timed_steps
from tfdyno.runtime.diagnose.input import Source, by_itself, flowing, looked, run, run_passes
from tfdyno.runtime.diagnose.stages import model_of, parallel_calls, plain, stage_facts
from tfdyno.runtime.diagnose.waits import Reading, line_of, made_at, places_kept, reading_watched
from tfdyno.runtime.workload.input_stages import kind, walk

limits = Limits(alone_s=0.5, stages_s=0.5)
result = {}

def wait(v):
    time.sleep(0.01)
    return v

def slow(v):
    return tf.ensure_shape(tf.numpy_function(wait, [v], tf.float32), [None, 3])

def seen(name, dataset, **how):
    facts, batch = looked(Source(dataset=dataset, **how), limits)
    result[name] = dataclasses.asdict(facts)

rows = tf.data.Dataset.from_tensor_slices(np.ones((40, 3), "float32"))
seen("slow", rows.shuffle(1000).batch(4).map(slow).prefetch(1))
seen("plain", rows.batch(4))
seen("cached", rows.batch(4).map(slow).cache())
seen("parallel", rows.batch(4).map(slow, num_parallel_calls=2, deterministic=False))
seen("empty", rows.batch(4).take(0))
seen("one", rows.batch(40))

folder = Path(tempfile.mkdtemp())
for number in range(3):
    with tf.io.TFRecordWriter(str(folder / f"{number}.tfrecord")) as writer:
        for _ in range(50):
            writer.write(b"x" * 1000)
files = [str(path) for path in folder.iterdir()]
seen("records", tf.data.TFRecordDataset(files).batch(10))
listed = tf.data.Dataset.list_files(str(folder / "*"))
seen("interleaved", listed.interleave(tf.data.TFRecordDataset, cycle_length=2).batch(10))
seen("read", tf.data.Dataset.from_tensor_slices(files).map(tf.io.read_file).batch(3))
off = tf.data.Options()
off.autotune.enabled = False
seen("no_autotune", rows.batch(4).map(slow).with_options(off))

def counted():
    for number in range(5):
        yield np.float32(number)

once_only = counted()
generator = tf.data.Dataset.from_generator(lambda: once_only, output_signature=tf.TensorSpec([]))
seen("generator", generator.batch(1), kind="generator")

# what a strategy has split tells its size otherwise
result["not_run"] = by_itself(Source(dataset=SimpleNamespace(cardinality=3)), limits)

def crowded(v):
    for each in (tf.abs, tf.acos, tf.asin, tf.asinh, tf.atan, tf.atanh, tf.cos, tf.cosh, tf.exp,
                 tf.floor, tf.negative, tf.round, tf.sigmoid, tf.sign, tf.sin, tf.sinh, tf.sqrt,
                 tf.square, tf.tan, tf.tanh, tf.math.erf, tf.math.erfc):
        v = each(v)
    return v + tf.random.uniform([3])

busy = rows.map(crowded)
result["crowded"] = stage_facts(busy, busy, {}, 1, {})[-1].operations

result["flowing"] = [kind(stage) for stage in walk(flowing(rows.shuffle(9).batch(4).map(slow)))]
different = tf.data.Dataset.range(9).unique()
result["whole"] = [kind(stage) for stage in walk(flowing(different.batch(4)))]
result["cache_first"] = [kind(stage) for stage in walk(flowing(rows.cache().batch(4)))]

# passes
opened = []
source = Source(dataset=rows.batch(4).map(slow), kind="pydataset",
                opening=lambda: opened.append("in"), closing=lambda: opened.append("out"))
ran = run_passes(source, 0.3, time.perf_counter)
result["passes"] = [min(ran.batch_s), opened[:2], len(opened) % 2]

# held
batch = next(iter(rows.batch(4)))
held = held_dataset(batch, rows.batch(4).element_spec)
result["held_spec"] = [str(held.element_spec.shape), str(rows.batch(4).element_spec.shape)]
result["held"] = [int(tf.reduce_sum(one)) for one in held.take(250)][::100]
specs = tf.TensorSpec([None, 3]), {"y": tf.TensorSpec([4, 3])}
pair = held_dataset((batch, {"y": batch}), specs)
result["pair"] = str(pair.element_spec[0].shape)
result["leading"] = [leading(batch), leading({"a": tf.constant(1)}), leading(())]
result["rows"] = [leading(tf.ragged.constant([[1], [2, 3], [4]])),
                  leading(tf.sparse.from_dense([[1, 0], [0, 2], [0, 0], [0, 0]]))]
begun, was = [], diagnose_input.run
diagnose_input.run = lambda *given: (begun.append(1), was(*given))[1]
short = Limits(alone_s=0.2, stages_s=0.2)
diagnose_input.looked(diagnose_input.Source(dataset=rows.batch(4)), short)
diagnose_input.MOST_START_S = -1.0
late, _ = diagnose_input.looked(diagnose_input.Source(dataset=rows.batch(4)), short)
diagnose_input.run, diagnose_input.MOST_START_S = was, 10.0
result["begun"] = [len(begun), [stage.title for stage in late.stages]]
calls = []
taken = timed_steps(lambda: (calls.append(1), time.sleep(0.002)), 0.1, count=2)
result["taken"] = [min(taken), len(calls) - len(taken)]

# waits
waits = []
reading = Reading(waits.append)
dataset = rows.batch(4).map(slow)
with reading_watched(reading):
    for one in dataset.take(3):
        pass
    counted_before = len(waits)

    @tf.function
    def inside(source):
        return next(source)

    inside(iter(dataset))
    for _ in dataset.as_numpy_iterator():
        break
result["waits"] = [max(waits[:3]), counted_before, len(waits)]
result["read_last"] = reading.dataset is dataset
for _ in dataset.take(1):
    pass
result["quiet"] = len(waits)

slowest, other = dataset.repeat().with_options(off), rows.batch(4)
with reading_watched(reading):
    pairs = zip(slowest, other)
    for _ in range(2):
        next(pairs)
        reading.of_step()
    for _ in dataset.take(3):  # a validation
        pass
    next(pairs)
    result["of_step"] = [reading.of_step() is slowest]
    reading.forget()
    before = len(waits)
    with reading.apart():
        for _ in other:
            pass
result["apart"] = [len(waits) - before, reading.of_step()]

source = "def made():\\n    return tf.data.Dataset.range(3)\\nmade_here = made()\\n"
code = compile(source, "/mine/train.py", "exec")
with places_kept():
    exec(code, globals())
result["made_at"] = [made_at(made_here), made_at(rows), line_of(made), line_of(tf.reduce_sum)]
names = "ParallelMapV2", "FiniteRepeat", "BatchV2", "TFRecord"
result["plain_names"] = [plain(name) for name in names]
batched = rows.batch(2, num_parallel_calls=tf.data.AUTOTUNE)
result["calls"] = [parallel_calls(batched), parallel_calls(rows)]
"""


@functools.cache
def facts() -> dict[str, Any]:
    """What was seen, by name."""
    found: dict[str, Any] = once("diagnose-input", lambda: in_tensorflow(CODE))
    return found


def middle(name: str) -> float:
    """The median of the seconds per batch of a pipeline."""
    values = sorted(facts()[name]["batch_s"])
    return float(values[len(values) // 2])


def stages(name: str) -> dict[str, dict[str, Any]]:
    """The stages of a pipeline by their titles."""
    return {stage["title"]: stage for stage in facts()[name]["stages"]}
