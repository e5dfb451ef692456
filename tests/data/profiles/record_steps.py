"""Makes the traces in ``steps/``: a few steps of each kind, on a CPU.

Run on two cores with TensorFlow 2.21.0 and Keras 3.15.1 on 2026-11-22:

    python record_steps.py steps

``steps/facts.json`` is what TensorFlow's own classes of the format (``xplane_pb2``, ``hlo_pb2``)
told of them, summed by the reader that tfdyno had before it read the bytes itself. Paths of the
machine in the programs of XLA are replaced by others of the same length.
"""

import gzip
import os
import sys
import tempfile
from pathlib import Path

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
import keras
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
folder, count = Path(sys.argv[1]), 5


def record(name, step):
    step()
    logs = tempfile.mkdtemp()
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
    tf.profiler.experimental.start(logs, options)
    for number in range(count):
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            step()
    tf.profiler.experimental.stop()
    (planes,) = Path(logs).rglob("*.xplane.pb")
    (folder / f"{name}.xplane.pb.gz").write_bytes(gzip.compress(planes.read_bytes(), 9, mtime=0))


big, images = tf.ones([300, 300]), tf.ones([4, 24, 24, 16])
w, kernel = tf.Variable(big), tf.Variable(tf.ones([3, 3, 16, 16]))
doubles = tf.cast(big, tf.float64)


def gemm():
    return tf.matmul(tf.matmul(big, w), w)


def conv():
    return tf.nn.relu(tf.nn.conv2d(images, kernel, 1, "SAME"))


def float64():
    return tf.matmul(doubles, doubles, name="creep")


record("eager", gemm)
record("float64", tf.function(float64))
for step in (gemm, conv, float64):
    record(f"{step.__name__}_xla", tf.function(step, jit_compile=True))

model = keras.Sequential([
    keras.Input((64,)), keras.layers.Dense(256, "relu"), keras.layers.BatchNormalization(),
    keras.layers.Dropout(0.2), keras.layers.Dense(8),
])  # fmt: skip
model.compile("adam", "mse", jit_compile=False)
x, y = np.ones((64, 64), "float32"), np.ones((64, 8), "float32")
record("keras", lambda: model.train_on_batch(x, y))

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def summed():
    part = tf.matmul(tf.ones([200, 200]), tf.ones([200, 200]))
    return tf.distribute.get_replica_context().all_reduce("sum", part)


record("all_reduce", tf.function(lambda: strategy.run(summed)))
