"""Overflows planted in float16 are counted, however they are trained."""

from __future__ import annotations

import pytest
from tests.runtime.benches import in_tensorflow

CODE = """
import keras, numpy as np, tensorflow as tf
from tfdyno.runtime.overflow import Overflows

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
keras.config.set_dtype_policy("mixed_float16")
PLANTED = [1, 2, 7, 12, 13]  # of 16 batches of 4
rng = np.random.default_rng(0)
x = rng.normal(size=(64, 4)).astype("float32")
y = x.sum(1, keepdims=True)
weight = np.ones(64, "float32")
for batch in PLANTED:
    weight[4 * batch] = 1e30  # at any scale of the loss far beyond 65,504

class Twice(keras.Model):
    # Two updates a step, so that a count of the steps is not one of the updates.
    def train_step(self, data):
        super().train_step(data)
        return super().train_step(data)

def count(optimizer, jit=False, strategy=None, kind=keras.Model, growth=2000):
    with (strategy or tf.distribute.get_strategy()).scope():
        keras.utils.set_random_seed(0)
        inputs = keras.Input((4,))
        model = kind(inputs, keras.layers.Dense(1)(inputs))
        wrapped = keras.optimizers.LossScaleOptimizer(
            optimizer(), initial_scale=1024.0, dynamic_growth_steps=growth
        )
        model.compile(wrapped, "mse", jit_compile=jit)
    if strategy:
        wrapped.build(model.trainable_variables)
    overflows = Overflows(wrapped)
    found = []
    for epoch in (1, 2):
        model.fit(x, y, sample_weight=weight, batch_size=4, shuffle=False, verbose=0)
        found.append(overflows.left_out(16 * epoch))
    later = Overflows(wrapped)
    model.fit(x, y, sample_weight=weight, batch_size=4, shuffle=False, verbose=0)
    found.append(later.left_out(16))
    scale = float(keras.ops.convert_to_numpy(wrapped.dynamic_scale))
    return [*found, int(keras.ops.convert_to_numpy(wrapped.iterations)), scale]

def sgd(**how):
    return lambda: keras.optimizers.SGD(1e-3, **how)

plain = keras.optimizers.SGD()
result = {
    "plain": count(sgd()),
    "xla": count(sgd(), jit=True),
    "accumulated": count(sgd(gradient_accumulation_steps=4)),
    "growing": count(sgd(), growth=3),
    "mirrored": count(sgd(), strategy=tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])),
    "twice": count(sgd(), kind=Twice),
    "unscaled": Overflows(plain).left_out(99),
}
"""


@pytest.mark.tf
def test_planted_overflows_are_counted_exactly() -> None:
    found = in_tensorflow(CODE)
    for name in ("plain", "xla", "mirrored"):
        # Five of sixteen in each of three epochs: the third is counted from its own beginning.
        assert found[name][:4] == [5, 10, 5, 3 * 11], name
        assert found[name][4] == 1024.0 / 2**15, name
    assert found["accumulated"][:4] == [5, 10, 5, 3 * 11 // 4]
    assert found["growing"][:3] == [5, 10, 5]
    assert found["growing"][4] > 1024.0 / 2**15  # it doubled in between
    assert found["twice"][:3] == [10, 20, 10]  # from the scale: the steps were told, not the calls
    assert found["unscaled"] == 0
