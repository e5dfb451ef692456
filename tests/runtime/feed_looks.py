"""Pipelines measured by themselves, and the parts that do it, seen in one TensorFlow."""

from __future__ import annotations

import functools
from typing import Any

from tests.runtime.benches import in_tensorflow
from tests.runtime.once import once

CODE = '''
import dataclasses, os, tempfile, threading, time
from pathlib import Path
import keras, numpy as np, tensorflow as tf
from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.choose.workload import Workload
from tfdyno.runtime.data import files as data_files, measure as data_measure
from tfdyno.runtime.data import rounds as data_rounds
from tfdyno.core.base.process_limits import allowed
from tfdyno.process.cpu_sets import few_cpus
from tfdyno.core.messages.data import Plan
from tfdyno.runtime.data.measure import DataMeasure, batch_size, looked_at_stages
from tfdyno.runtime.data.rounds import CpuSet, Flow, measured_rounds
from tfdyno.runtime.data.source import of_fit, with_data
from tfdyno.runtime.diagnose.input import Source
from tfdyno.process.stop_asked import StopAsked

data_measure.WARM_S, data_rounds.SETTLE_S = 0.2, 0.05
plan = Plan(rounds=2, seconds_s=0.2, looks=2, look_s=0.5)
result = {"said": []}
folder = Path(tempfile.mkdtemp())

naps, naps_at = [], {}

def measured(name, data, plan=plan):
    def told(line):
        result["said"].append(line)
        naps_at.setdefault(name, []).append((line, len(naps)))
    naps.clear()
    bench = DataMeasure(name, plan, told)
    result[name] = dataclasses.asdict(bench.measured(data))

def refused(name, do):
    try:
        result[name] = str(do())
    except TfdynoError as error:
        result[name] = str(error)

# files, a parallel map, shuffle, batch and prefetch
for number in range(3):
    with tf.io.TFRecordWriter(str(folder / f"{number}.tfrecord")) as writer:
        for _ in range(200):
            writer.write(os.urandom(1000))
files = sorted(str(path) for path in folder.iterdir())

def decode(record):
    return tf.reduce_sum(tf.cast(tf.io.decode_raw(record, tf.uint8), tf.float32)[:999]), 1

records = (tf.data.TFRecordDataset(files).shuffle(50).map(decode, num_parallel_calls=2)
           .batch(20).prefetch(2))
measured("records", of_fit({"x": records}, "net"))
result["named"] = {
    "records": data_files.named_files(records),
    "listed": sorted(data_files.named_files(
        tf.data.Dataset.list_files(str(folder / "*")).batch(2))),
    "slices": data_files.named_files(
        tf.data.Dataset.from_tensor_slices((files, ["cat", "dog", "cow"])).map(lambda f, c: c)),
    "texts": data_files.named_files(tf.data.Dataset.from_tensor_slices(["a", "b"])),
}
result["files"] = files

# a map that sleeps 5 ms for each batch of four, one at a time
def sleep(value):
    naps.append(1)
    time.sleep(0.005)
    return value

def slow(value):
    return tf.ensure_shape(tf.numpy_function(sleep, [value], tf.float32), [None, 3])

rows = tf.data.Dataset.from_tensor_slices(np.ones((40, 3), "float32"))
off = tf.data.Options()
off.autotune.enabled = False
measured("sleeping", of_fit({"x": rows.batch(4).map(slow)}, "net"))
measured("cached", of_fit({"x": rows.batch(4).map(slow).cache()}, "net"))
result["naps"] = dict(naps_at["cached"])
measured("never_full", of_fit({"x": rows.repeat(1000).batch(4).map(slow).cache()}, "net"),
         dataclasses.replace(plan, first_pass_s=0.1, looks=0))
measured("arrays", of_fit({"x": np.ones((100, 3)), "y": np.ones(100), "batch_size": 10,
                           "validation_split": 0.2}, "net"))

def batches(count):
    for _ in range(count):
        time.sleep(0.002)
        yield np.ones((8, 3), "float32"), np.ones(8, "float32")

measured("generator", of_fit({"x": batches(5000)}, "net"))
measured("ended", of_fit({"x": batches(230)}, "net"))
short = of_fit({"x": batches(4)}, "net")
refused("too_short", lambda: DataMeasure("x", plan, print).measured(short))

class Made(keras.utils.PyDataset):
    def __len__(self):
        return 6
    def __getitem__(self, index):
        time.sleep(0.002)
        return np.ones((8, 3), "float32"), np.ones(8, "float32")

measured("pydataset", of_fit({"x": Made()}, "net"))
measured("workers", of_fit({"x": Made(workers=3)}, "net"))
measured("rebatched", of_fit({"x": rows.batch(4)}, "net", 10), dataclasses.replace(plan, looks=0))

# refusals
empty = of_fit({"x": rows.take(0).batch(4)}, "net")
refused("empty", lambda: DataMeasure("x", plan, print).measured(empty))
refused("no_data", lambda: of_fit({}, "net"))
refused("of_set", lambda: of_fit({"x": {1, 2}}, "net"))

# stopped: in the middle, and before the first round has ended
def stopped(at):
    def told(line):
        if line.startswith(at):
            bench.stop("Ctrl-C")
    bench = DataMeasure("x", dataclasses.replace(plan, rounds=50), told)
    return bench.measured(of_fit({"x": rows.batch(4).map(slow)}, "net"))

result["stopped"] = dataclasses.asdict(stopped("round 3 of"))
try:
    stopped("warming up")
    result["stopped_early"] = "told"
except StopAsked:
    result["stopped_early"] = "nothing"
try:
    DataMeasure("x", plan, print).stop("SIGTERM")
    result["stopped_in_code"] = "goes on"
except StopAsked as stop:
    result["stopped_in_code"] = stop.signal_name

# flow
flow = Flow(Source(dataset=rows.batch(4)))
result["opened"] = [flow.open(), flow.start_s > 0, batch_size(flow.first)]
for _ in range(25):
    flow.next()
result["goes_on"] = [flow.has_ended, flow.taken]
once_only = Flow(Source(dataset=rows.batch(4)), again=False)
once_only.open()
found = once_only.round(5.0, 2.0, "first")
result["once"] = [once_only.has_ended, found.samples, found.kind, found.batches]
opened = []
passes = Flow(Source(dataset=rows.batch(20), kind="pydataset", opening=lambda: opened.append("in"),
                     closing=lambda: opened.append("out")))
passes.open()
for _ in range(4):
    passes.next()
passes.close()
result["passes"] = opened
nothing = Flow(Source(dataset=rows.take(0).batch(4), kind="pydataset"))
result["nothing"] = [nothing.open(), nothing.has_ended]
brief = Flow(Source(dataset=rows.batch(4)))
brief.open()
result["brief"] = brief.round(1e-9, 1.0).batches
result["scalar"] = [batch_size(tf.constant(1.0)), batch_size(tf.ones((7, 2)))]

# rounds of each set, in turns
kept, sets = [], [CpuSet(cpus=float(len(allowed())), numbers=allowed()),
                  CpuSet(cpus=1.0, numbers=allowed()[:1])]
measured_rounds(flow, sets, rounds=2, seconds_s=0.1, kind="warm", keep=kept.append,
                progress=lambda _said: None)
result["turns"] = [one.cpus for one in kept]
result["rounds_s"] = [one.seconds_s for one in kept]

# fewer CPUs, for threads that run already too
seen = {}
stop_thread, ready = threading.Event(), threading.Event()
def wait():
    seen["id"] = threading.get_native_id()
    ready.set()
    stop_thread.wait()
thread = threading.Thread(target=wait)
thread.start()
ready.wait()
every = allowed()
with few_cpus(every[:1]):
    seen["few"] = [allowed() == every[:1],
                   os.sched_getaffinity(seen["id"]) == set(every[:1])]
seen["after"] = [allowed() == every, os.sched_getaffinity(seen["id"]) == set(every)]
stop_thread.set()
thread.join()
result["pinned"] = [*seen["few"], *seen["after"]]

# looks at stages
runs, run_plainly = [], data_measure.run
data_measure.run = lambda *given: (runs.append(run_plainly(*given)), runs[-1])[1]
def rest(value):
    time.sleep(0.001)
    return value

def decode_slowly(record):
    value, one = decode(record)
    return tf.ensure_shape(tf.numpy_function(rest, [value], tf.float32), []), one

resting = (tf.data.TFRecordDataset(files).shuffle(50).map(decode_slowly, num_parallel_calls=2)
           .batch(20).prefetch(2))
look = looked_at_stages(Source(dataset=resting), flow, 0.5)
result["looked_batches"] = len(runs[-1].batch_s)
data_measure.run = run_plainly
result["look"] = [dataclasses.asdict(stage) for stage in look]
counted = (tf.data.Dataset.from_tensor_slices(files).interleave(tf.data.TFRecordDataset)
           .apply(tf.data.experimental.assert_cardinality(600)).shuffle(1000).map(decode).batch(20))
look = looked_at_stages(Source(dataset=counted), flow, 0.5)
result["counted"] = [dataclasses.asdict(stage) for stage in look]
result["no_look"] = looked_at_stages(Source(dataset=rows, kind="generator"), flow, 0.5)

# the disk
large = folder / "large.bin"
large.write_bytes(os.urandom(1 << 20) * 24)
os.sync()
result["disk"] = dataclasses.asdict(data_files.disk_facts([str(large)]))
result["little"] = dataclasses.asdict(data_files.disk_facts(files * 2, most_bytes=300_000))
result["warm_only"] = dataclasses.asdict(data_files.disk_facts([str(large)], cold=False))
result["no_files"] = data_files.disk_facts([str(folder / "missing")])
result["unread"] = data_files.disk_facts([str(folder)])
result["forgot"] = [data_files.forget([str(large), str(folder / "missing")]),
                    data_files.forget([str(large)] * 3, most_s=-1.0)]
result["mounted"] = data_files.file_system("/proc/self/stat")
with data_files.OpenedFiles() as seen_files:
    with large.open("rb"), (folder / "written.txt").open("w"):
        time.sleep(0.2)
result["opened_files"] = list(seen_files.seen)
result["large"] = str(large)

# a function, a script, a loop
module = folder / "mine.py"
module.write_text("""
import keras, numpy as np, tensorflow as tf
rows = tf.data.Dataset.from_tensor_slices((np.ones((40, 3), 'float32'), np.ones((40, 1)))).batch(4)
def model():
    made = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    made.compile('sgd', 'mse')
    return made
def pair():
    return model(), rows
def arrays():
    return np.ones((40, 3)), np.ones(40)
def alone():
    return rows
def bare():
    return model()
""")
hidden = folder / "hidden.bin"
hidden.write_bytes(os.urandom(1 << 20))
def opened_by_hand(value):
    with hidden.open("rb") as file:
        time.sleep(0.01)
        file.read()
    return value
by_hand = rows.batch(4).map(lambda v: tf.ensure_shape(
    tf.numpy_function(opened_by_hand, [v], tf.float32), [None, 3]))
measured("by_hand", of_fit({"x": by_hand}, "net"), dataclasses.replace(plan, looks=0, rounds=1))

import_line = "import sys\\nfrom mine import model, rows\\nimport tensorflow as tf\\n"
LOOP = import_line + """
made, optimizer = model(), tf.keras.optimizers.SGD()
@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((made(x) - tf.cast(y, tf.float32)) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, made.trainable_variables),
                                  made.trainable_variables))
    return loss
for x, y in rows:
    step(x, y)
"""
ITERATOR = LOOP.replace("def step(x, y):", "def step(source):\\n    x, y = next(source)").replace(
    "for x, y in rows:\\n    step(x, y)",
    "source = iter(rows)\\nfor _ in range(5):\\n    step(source)")
EAGER = LOOP.replace("@tf.function\\n", "")
BATCHES = import_line + "made = model()\\nfor x, y in rows:\\n    made.train_on_batch(x, y)\\n"
ARRAYS = BATCHES.replace("for x, y in rows:", "import numpy as np\\nfor _ in range(3):").replace(
    "(x, y)", "(np.ones((4, 3)), np.ones((4, 1)))")
FIT = import_line + "model().fit(rows, epochs=3)\\nraise RuntimeError('not reached')\\n"
TEMPORARY = """
import tempfile, pathlib, keras, tensorflow as tf
from mine import model
with tempfile.TemporaryDirectory() as name:
    path = pathlib.Path(name, "x.txt"); path.write_text("1 2 3\\\\n" * 100)
    data = tf.data.TextLineDataset(str(path)).map(
        lambda line: (tf.strings.to_number(tf.strings.split(line)), 1.0)).batch(4)
    model().fit(data)
"""
FAILS = import_line + """
model().fit(rows.map(lambda x, y: (tf.ensure_shape(x, [None, 4]), y)))
"""
scripts = {"fit": FIT, "loop": LOOP, "iterator": ITERATOR, "eager": EAGER, "batches": BATCHES,
           "array_loop": ARRAYS, "none": "print(1)", "temporary": TEMPORARY, "fails": FAILS}

def reached(data):
    first = next(iter(data.source.dataset))
    size = batch_size(first)
    return f"{data.title} {data.source.kind} {size} {data.batches_per_epoch} {' '.join(data.notes)}"

for name, code in scripts.items():
    path = folder / f"{name}.py"
    path.write_text(code)
    refused(f"script {name}", lambda path=path: with_data(
        Workload(reference=str(path), kind="script"), reached))
refused("loop of 5", lambda: with_data(
    Workload(reference=str(folder / "loop.py"), kind="script"), reached, batch_size=5))
refused("fit of 5", lambda: with_data(
    Workload(reference=str(folder / "fit.py"), kind="script"), reached, batch_size=5))
for name in ("pair", "arrays", "alone", "bare", "lost", "model:alone"):
    refused(f"function {name}", lambda name=name: with_data(
        Workload(reference=f"{module}:{name}", kind="function"), reached))
refused("application", lambda: with_data(
    Workload(reference="keras:ResNet50", kind="application"), reached))
'''


@functools.cache
def found() -> dict[str, Any]:
    """What was seen, by name."""
    seen: dict[str, Any] = once("feed-looks", lambda: in_tensorflow(CODE))
    return seen
