"""The model of ``tfdyno.fit``: afterwards Keras' own fit works, and another tfdyno.fit."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.fits import fitted

pytestmark = pytest.mark.tf
CASES = """
def afterwards():
    net, recipe = model(), tfdyno.Recipe(execution="graph", steps_per_execution=2, accumulation=2,
                                         ema=0.9, clip_norm=1.0, batch_size=8)
    compiled = net.jit_compile, net.steps_per_execution
    first = quiet(net, (x, y), recipe=recipe)
    again = quiet(net, (x, y), recipe=recipe)
    return {"applied": [[one.name for one in each.applied] for each in (first, again)],
            "updates": [first.updates, again.updates], "steps": first.steps,
            "compile": compiled == (net.jit_compile, net.steps_per_execution),
            "clip": net.optimizer.global_clipnorm, "works": plain_works(net)}

def scaled():
    net = model()
    net.optimizer = keras.optimizers.LossScaleOptimizer(net.optimizer)
    for _ in range(2):
        quiet(net, (x, y), recipe={"loss_scale": 64.0})
    return {"factor": net.optimizer.loss_scale_factor, "works": plain_works(net)}

def mirrored():
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        net = model()
    recipe = {"strategy": "mirrored", "devices": 2, "execution": "xla", "accumulation": 2}
    results = [quiet(net, (x, y), recipe=recipe, batch_size=16) for _ in range(2)]
    works = plain_works(net)
    copies = [[part.numpy() for part in v._value.values] for v in net.trainable_variables]
    return {"works": works, "updates": [one.updates for one in results],
            "loss": [one.history["loss"] for one in results],
            "replicas": results[0].replica_count,
            "equal": all((a == b).all() for a, b in copies),
            "single": said(lambda: quiet(net, (x, y), recipe={"strategy": "single"}))}
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return fitted(tmp_path_factory.mktemp("fit"), CASES, "afterwards", "scaled", "mirrored")


def test_the_model_goes_on_with_keras_fit_and_with_the_same_recipe(found: dict[str, Any]) -> None:
    case = found["afterwards"]
    assert case["works"]
    assert case["compile"], "jit_compile and steps_per_execution are as they were"
    assert (case["steps"], case["updates"]) == (8, [4, 4])
    assert case["clip"] == 1.0
    first, again = map(set, case["applied"])
    assert {"accumulation", "ema", "execution"} <= first == again


def test_a_model_of_two_replicas_composes_and_goes_back_to_keras(found: dict[str, Any]) -> None:
    case = found["mirrored"]
    assert case["replicas"] == 2
    assert case["updates"] == [2, 2]
    assert case["works"]
    assert case["equal"], "Keras' own step sums the gradients of the replicas again"
    assert "strategy cannot be set" in case["single"]
    assert "built in a MirroredStrategy of 2" in case["single"]


def test_a_fixed_loss_scale_can_be_asked_for_again(found: dict[str, Any]) -> None:
    assert found["scaled"] == {"factor": 64.0, "works": True}
