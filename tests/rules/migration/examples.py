# ruff: noqa: E501
"""For every cause code that has it, and code much like it that does not."""

from __future__ import annotations

TF = "import tensorflow as tf\n"
KERAS = "import keras\n"
MODEL = "model = keras.Sequential([keras.layers.Dense(1)])\n"
GROWTH = "tf.config.experimental.set_memory_growth(gpu, True)\n"
MIRRORED = TF + KERAS + "strategy = tf.distribute.MirroredStrategy()\n"
SCOPED = MIRRORED + "with strategy.scope():\n    " + MODEL
FLOAT16 = KERAS + 'keras.mixed_precision.set_global_policy("mixed_float16")\n'
TAPE = """
def step(x):
    with tf.GradientTape() as tape:
        loss = loss_of(x)
    grads = tape.gradient(loss, weights)
    optimizer.apply_gradients(zip(grads, weights))
"""
LOOP = """
for i in range(accumulation_steps):
    with tf.GradientTape() as tape:
        loss = loss_of(i) / accumulation_steps
    grads = tape.gradient(loss, weights)
    optimizer.apply_gradients(zip(grads, weights))
"""

EXAMPLES: dict[str, tuple[str, str]] = {
    "tf1_session": (TF + "with tf.Session() as sess:\n    pass", TF + "with tf.compat.v1.Session() as sess:\n    pass"),
    "tf1_config": (TF + "config = tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True))", TF + "from tensorflow.core.protobuf.config_pb2 import ConfigProto\nConfigProto()"),
    "tf1_graph": (TF + "x = tf.placeholder(tf.float32, [None, 3])", "import torch as tf\nx = tf.placeholder(3)\n# tensorflow"),
    "tf1_contrib": ("from tensorflow.contrib import slim", "import tf_slim_of_mine as slim  # not tensorflow.contrib"),
    "tf1_flags": (TF + "FLAGS = tf.app.flags.FLAGS", "from absl import flags\n" + TF + "FLAGS = flags.FLAGS"),
    "tf1_logging": (TF + "tf.logging.set_verbosity(tf.logging.ERROR)", TF + 'tf.get_logger().setLevel("ERROR")'),
    "tf1_layers": (TF + "y = tf.layers.dense(x, 3)", TF + "y = tf.keras.layers.Dense(3)(x)"),
    "tf1_name": (TF + "y = tf.log(x)", TF + "y = tf.math.log(x)"),
    "estimator": (TF + "tf.estimator.Estimator(model_fn)", TF + "class Own:\n    estimator = 1\nOwn.estimator"),
    "python2": (TF + 'print "step", 3', TF + 'print("step", 3'),
    "compat_config": (TF + "c = tf.compat.v1.ConfigProto()", TF + "c = tf.train.ClusterSpec({})"),
    "compat_v1": ("import tensorflow.compat.v1 as tf\ntf.placeholder(tf.float32)", TF + "tf.constant(1)"),
    "no_such_growth": (TF + "tf.keras.utils.set_memory_growth(True)", TF + GROWTH),
    "growth_too_late": (TF + "x = tf.constant(1)\n" + GROWTH, TF + 'gpus = tf.config.list_physical_devices("GPU")\n' + GROWTH + "x = tf.constant(1)"),
    "visible_devices_late": (TF + 'import os\nx = tf.zeros(3)\nos.environ["CUDA_VISIBLE_DEVICES"] = "0"', 'import os\nos.environ["CUDA_VISIBLE_DEVICES"] = "0"\n' + TF + "x = tf.zeros(3)"),
    "visible_devices_after_import": (TF + 'import os\nos.environ["CUDA_VISIBLE_DEVICES"] = "1"', 'import os\nos.environ.update({"CUDA_VISIBLE_DEVICES": "1"})\n' + TF),
    "backend_after_import": ("import os\n" + KERAS + 'os.environ["KERAS_BACKEND"] = "jax"', 'import os\nos.environ["KERAS_BACKEND"] = "jax"\n' + KERAS),
    "legacy_keras_ignored": ("import os\n" + TF + 'os.environ["TF_USE_LEGACY_KERAS"] = "1"', 'import os\nos.environ["TF_USE_LEGACY_KERAS"] = "1"\n' + TF),
    "deprecated_call": (TF + "tf.test.is_gpu_available()", TF + "tf.test.is_built_with_cuda()"),
    "tensorrt": ("from tensorflow.python.compiler.tensorrt import trt_convert as trt", "import tensorrt as trt\n" + TF),
    "keras2_name": ("from keras.utils import multi_gpu_model", "from keras.utils import to_categorical"),
    "keras2_argument": (KERAS + MODEL + "model.fit(x, workers=4)", KERAS + "sampler.fit_all(x, workers=4)"),
    "keras_backend": ("import keras.backend as K\ny = K.mean(x)", "from tensorflow.keras import backend as K\ny = K.mean(x)"),
    "keras_session": ("from keras.backend import set_session\n", "from keras.backend import clear_session\n"),
    "generator_methods": (KERAS + "model.fit_generator(batches)", KERAS + "model.fit(batches)"),
    "lr_argument": ("from tensorflow.keras.optimizers import Adam\nAdam(lr=1e-3)", "from torch.optim import Adam\n" + KERAS + "Adam(lr=1e-3)"),
    "decay_argument": (KERAS + "keras.optimizers.SGD(0.1, decay=1e-6)", KERAS + "keras.optimizers.SGD(0.1, weight_decay=1e-6)"),
    "optimizers_legacy": (TF + "tf.keras.optimizers.legacy.Adam()", TF + "tf.keras.optimizers.Adam()"),
    "save_format": (KERAS + MODEL + 'model.save("m", save_format="tf")', KERAS + 'image.save("m", format="png")'),
    "model_name": (KERAS + MODEL + 'model.save("folder")', KERAS + MODEL + 'model.save("m.keras")\nfigure.save("folder")'),
    "weights_name": (KERAS + 'model.save_weights(f"run/{epoch}.ckpt")', KERAS + 'model.save_weights(f"run/{epoch}.weights.h5")'),
    "h5_saving": (KERAS + MODEL + 'model.save("m.h5")', KERAS + 'h5py.save("m.h5")'),
    "private_keras": ("from tensorflow.python.keras import layers", "from tensorflow.python.framework import ops"),
    "addons": ("import tensorflow_addons as tfa\ntfa.optimizers.AdamW(1e-4)", "import my_addons as tfa  # tensorflow\ntfa.optimizers.AdamW(1e-4)"),
    "mixed_precision_experimental": ("from tensorflow.keras.mixed_precision import experimental as mp\nmp.set_policy('mixed_float16')", "from tensorflow.keras import mixed_precision as mp\nmp.set_global_policy('mixed_float16')"),
    "loss_scale_api": (KERAS + "optimizer.get_scaled_loss(loss)", KERAS + "optimizer.scale_loss(loss)"),
    "floatx_float16": (KERAS + 'keras.backend.set_floatx("float16")', KERAS + 'keras.backend.set_floatx("float32")'),
    "float16_softmax": (FLOAT16 + 'keras.layers.Dense(10, activation="softmax")', FLOAT16 + 'keras.layers.Dense(10, activation="softmax", dtype="float32")'),
    "loss_not_scaled": (TF + FLOAT16 + TAPE, TF + FLOAT16 + TAPE.replace("loss_of(x)", "optimizer.scale_loss(loss_of(x))")),
    "strategy_jit_compile": (SCOPED + "    model.compile('adam', jit_compile=True)", SCOPED + "    model.compile('adam', jit_compile='auto')"),
    "strategy_steps": (SCOPED + "    model.compile('adam', steps_per_execution=8)", SCOPED + "    model.compile('adam', steps_per_execution=1)"),
    "strategy_accumulation": (SCOPED + "    model.compile(keras.optimizers.Adam(gradient_accumulation_steps=4))", KERAS + MODEL + "model.compile(keras.optimizers.Adam(gradient_accumulation_steps=4))"),
    "strategy_ema_overwrite": (SCOPED + "    model.compile(keras.optimizers.Adam(use_ema=True, ema_overwrite_frequency=10))", SCOPED + "    model.compile(keras.optimizers.Adam(use_ema=True))"),
    "multiworker_fit": (SCOPED.replace("Mirrored", "MultiWorkerMirrored") + "model.fit(data)", SCOPED + "model.fit(data)"),
    "parameter_server_fit": (SCOPED.replace("MirroredStrategy()", "ParameterServerStrategy(resolver)") + "model.fit(data)", SCOPED.replace("MirroredStrategy()", "ParameterServerStrategy(resolver)") + "coordinator.schedule(step)"),
    "model_outside_scope": (MIRRORED + MODEL + "model.fit(data)", SCOPED + "model.fit(data)"),
    "manual_shard": (MIRRORED + "d = tf.data.Dataset.range(9).shard(2, 0)", TF + "d = tf.data.Dataset.range(9).shard(2, 0)"),
    "keras_distribution": (TF + KERAS + "keras.distribution.set_distribution(keras.distribution.DataParallel())", "import jax\n" + KERAS + "keras.distribution.set_distribution(keras.distribution.DataParallel())"),
    "remat_scope": (TF + KERAS + "with keras.RematScope(mode='full'):\n    pass", TF + KERAS + "keras.remat(block)"),
    "horovod_keras3": ("import horovod.tensorflow.keras as hvd\n" + KERAS + "opt = hvd.DistributedOptimizer(keras.optimizers.SGD())", "import horovod.torch as hvd\n" + KERAS + "opt = hvd.DistributedOptimizer(sgd)"),
    "horovod_keras3_variables": ("import horovod.tensorflow as hvd\n" + KERAS + "hvd.broadcast_variables(model.variables, root_rank=0)", "import horovod.tensorflow as hvd\n" + KERAS + "hvd.broadcast_variables([v.value for v in model.variables], root_rank=0)"),
    "horovod_callbacks": ("import horovod.tensorflow as hvd\nhvd.callbacks.MetricAverageCallback()", "import horovod.tensorflow.keras as hvd\nhvd.callbacks.MetricAverageCallback()"),
    "accumulation_nothing": (TF + LOOP, TF + LOOP.replace("    optimizer.apply", "    total = [a + g for a, g in zip(total, grads)]\noptimizer.apply")),
    "eager_left_on": (KERAS + "model.compile('adam', run_eagerly=True)", KERAS + "model.compile('adam', run_eagerly=False)"),
    "no_prefetch": (TF + "d = tf.data.TFRecordDataset(f).map(parse).batch(8)\nmodel.fit(d)", TF + "d = tf.data.TFRecordDataset(f).map(parse).batch(8).prefetch(2)\nmodel.fit(d)"),
}  # fmt: skip
"""Cause to code with it, and the near miss."""

NOT_PYTHON: dict[str, tuple[str, str, str]] = {
    "tensorflow_gpu": ("requirements.txt", "numpy\ntensorflow_gpu>=2.4\n", "tensorflow[and-cuda]\n# tensorflow-gpu\n"),
    "tensorflow_gpu_old": ("requirements.txt", "tensorflow-gpu==2.10.1\n", "tensorflow-gpu-estimator==2.3\n"),
}  # fmt: skip
"""Cause to the name of a file, its text with the cause, and the near miss."""
