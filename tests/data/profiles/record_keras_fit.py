"""Makes keras_fit_stalled.xplane.pb.gz: 12 steps of a small Keras fit whose data comes 10 ms late.

Run on two cores with TensorFlow 2.21.0 and Keras 3.15.1 on 2026-11-22:

    python record_keras_fit.py keras_fit_stalled.xplane.pb.gz
"""

import gzip
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
x, y = np.random.rand(640, 32).astype("float32"), np.random.rand(640, 1).astype("float32")
model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse", jit_compile=False)


def late(a, b):
    time.sleep(0.01)
    return a, b


data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32).repeat()
data = data.map(lambda a, b: tf.numpy_function(late, [a, b], [tf.float32, tf.float32]))
data = data.map(lambda a, b: (tf.ensure_shape(a, [None, 32]), tf.ensure_shape(b, [None, 1])))
model.fit(data, steps_per_epoch=4, epochs=1, verbose=0)

logs = tempfile.mkdtemp()
options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
tf.profiler.experimental.start(logs, options)
model.fit(data, steps_per_epoch=12, epochs=1, verbose=0)
tf.profiler.experimental.stop()
(planes,) = Path(logs).glob("plugins/profile/*/*.xplane.pb")
Path(sys.argv[1]).write_bytes(gzip.compress(planes.read_bytes(), 9, mtime=0))
