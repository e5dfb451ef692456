"""A recipe on TensorFlow and on a model, and what Keras cannot do."""

from __future__ import annotations

import pytest
from tests.runtime.benches import in_tensorflow

from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.runtime.recipe.apply import OWN_LOOP, asked, check_recipe

APPLIED = """
import keras, numpy as np, tensorflow as tf
from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.runtime.recipe.apply import (
    apply_recipe, limit_bytes, reported, set_memory_fraction, settings_held, verify,
)
from tfdyno.runtime.recipe.settle import settle

recipe = Recipe(precision="float32", threads_intra=1, threads_inter=2, accumulation=4,
                clip_norm=1.0, execution="xla", steps_per_execution=2, seed=1)
notes, held = apply_recipe(recipe), []
with settings_held(recipe, held):
    tf.config.threading.set_intra_op_parallelism_threads(8)
    tf.config.experimental.enable_tensor_float_32_execution(True)
set_memory_fraction(0.3)
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

def model(optimizer, **how):
    built = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    built.compile(optimizer, "mse", **how)
    return built

def said(call):
    try:
        call()
    except TfdynoError as error:
        return str(error)

one = model(keras.optimizers.SGD(1.0, clipvalue=0.5), run_eagerly=True)
tf.config.run_functions_eagerly(True)
notes += settle(one, recipe, "train")
weights = [np.array(v) for v in one.trainable_variables]
one.fit(np.full((24, 4), 100.0), np.zeros((24, 1)), batch_size=2, shuffle=False, verbose=0)
pairs = zip(weights, one.trainable_variables)
moved = np.sqrt(sum(((old - np.array(new)) ** 2).sum() for old, new in pairs))
verify(recipe)
notes += apply_recipe(Recipe(deterministic=True))
verify(Recipe(deterministic=True))
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    two = model("sgd")
result = {
    "notes": notes, "held": held, "updates": int(one.optimizer.iterations), "moved": float(moved),
    "threads": tf.config.threading.get_intra_op_parallelism_threads(),
    "eagerly": tf.config.functions_run_eagerly(),
    "jit": one.jit_compile, "together": one.steps_per_execution,
    "accumulation": said(lambda: settle(two, Recipe(accumulation=2), "train")),
    "xla": said(lambda: settle(two, Recipe(execution="xla"), "train")),
    "plain": said(lambda: settle(two, Recipe(clip_norm=1.0), "train")),
    "policy": said(lambda: settle(one, Recipe(precision="mixed_float16"), "infer")),
    "tf32": said(lambda: verify(Recipe(precision="tf32"))),
    "fraction": [said(lambda: verify(Recipe(memory_fraction=part))) for part in (0.3, 0.4)],
    "limit": said(lambda: verify(Recipe(memory_limit_bytes=1 << 30))), "none": limit_bytes([cpu]),
    "reported": reported(Recipe(deterministic=True, threads_inter=2, memory_fraction=0.3,
                                memory_growth=True)),
    "late": said(lambda: set_memory_fraction(0.5)),
    "no card": said(lambda: apply_recipe(Recipe(memory_fraction=0.5))),
}
"""


def test_a_setting_of_training_is_refused_for_inference() -> None:
    with pytest.raises(UsageError, match="clip_norm is a setting of training"):
        check_recipe(Recipe(clip_norm=1.0), "infer")
    check_recipe(Recipe(clip_norm=1.0), "train")


def test_what_a_recipe_asks_of_keras_own_loop() -> None:
    recipe = Recipe(accumulation=2, batch_size=8, execution="xla")
    assert asked(recipe, OWN_LOOP) == ["accumulation", "batch_size"]
    assert asked(Recipe(), OWN_LOOP) == []


@pytest.mark.tf
def test_settings_reach_tensorflow_and_the_model_and_hold() -> None:
    found = in_tensorflow(APPLIED)
    assert found["threads"] == 1
    assert found["held"] == [
        "The code calls set_intra_op_parallelism_threads; threads_intra of the recipe holds.",
        "The code calls enable_tensor_float_32_execution; precision of the recipe holds.",
    ]
    assert found["notes"] == [
        "run_eagerly is off: execution = xla holds.",
        "run_functions_eagerly is off: execution = xla holds.",
        "The optimizer's own clipping is off: clip_norm of the recipe holds.",
        "deterministic needs a seed: 0.",
    ]
    assert (found["jit"], found["together"], found["eagerly"]) == (True, 2, False)
    assert found["updates"] == 3  # 24 samples / 2 per batch / 4 batches per update
    # The gradient is far longer than 1 and stays on one side: each update moves at most 1.
    assert 1.0 <= found["moved"] <= 3.0 + 1e-4
    assert found["accumulation"].startswith(
        "accumulation is not possible under tf.distribute.MirroredStrategy with Keras 3"
    )
    assert found["xla"].startswith("execution=xla is not possible under")
    assert found["plain"] is None
    assert found["policy"].startswith("precision = mixed_float16 does not reach the layers")
    assert found["tf32"] == "TensorFlow did not take precision = tf32."
    why = found["fraction"][1].removeprefix("TensorFlow did not take memory_fraction = 0.4: it has")
    assert found["fraction"][0] is None
    assert float(why.rstrip(".")) == pytest.approx(0.3)
    said = "TensorFlow did not take memory_limit_bytes = 1073741824: it has 0."
    assert (found["limit"], found["none"]) == (said, 0)
    assert found["reported"] == {  # memory grows on no card here, so that nothing is said of it
        "threads_inter": 2, "memory_fraction": pytest.approx(0.3), "deterministic": True,
    }  # fmt: skip
    assert found["late"].startswith("memory_fraction = 0.5 comes too late: TensorFlow has opened")
    assert found["no card"] == "memory_fraction needs a GPU: TensorFlow sees none here."
