"""runtime/remat/checkpointed: parts that JAX computes again; see also train_jax/test_recipes.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from tests.runtime.forks import NO_GPU

pytestmark = pytest.mark.tf
CHILD = """
import json
import jax, keras, numpy as np
from tfdyno.runtime.remat.checkpointed import CheckpointedRegion

notes = []
layer = keras.layers.BatchNormalization(momentum=0.5)
layer.build((None, 3))
region = CheckpointedRegion("norm", [layer], notes)
x = jax.numpy.arange(12.0).reshape(4, 3)

def run(call):
    values = [one.value for one in layer.variables]
    def loss(scale, x):
        mapping = list(zip(layer.variables, [scale, *values[1:]]))
        with keras.StatelessScope(mapping) as scope:
            made = call(x, training=True)
        return (made ** 2).sum(), [scope.get_current_value(v) for v in layer.variables[2:]]
    (value, moved), (of_scale, of_x) = jax.value_and_grad(loss, (0, 1), has_aux=True)(values[0], x)
    return [float(value), *(np.asarray(one).tolist() for one in (*moved, of_scale, of_x))]

masked = jax.numpy.ones((4, 3))
masked._keras_mask = jax.numpy.ones((4,), bool)
with keras.StatelessScope():
    region.run(layer.call, masked)
print(json.dumps({
    "plain": run(layer.call), "twice": run(lambda x, **o: region.run(layer.call, x, **o)),
    "alone": np.asarray(region.run(layer.call, x)).shape, "notes": notes}))
"""


def test_values_gradients_and_what_it_assigns_are_those_of_one_run_and_masks_are_told() -> None:
    environment = {**os.environ, **NO_GPU, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["twice"] == found["plain"]
    assert found["alone"] == [4, 3]
    assert found["notes"] == ["norm is not recomputed: a mask hangs on what it is given."]
