"""Which weight of a model is lost: by its kind, its precision, and where the values lie."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.runtime.forks import forked
from tests.runtime.jaxes import looked

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

pytestmark = pytest.mark.tf
CODE = """
import json
import keras
import numpy as np
import tensorflow as tf
from tfdyno.runtime.train.finite_weights import FiniteWeights, lost_weight
from tfdyno.runtime.train.watch import NanLoss
from tfdyno.runtime.train.consensus import Consensus

def model(**how):
    layers = [keras.Input((2,)), keras.layers.Dense(3, name="first", **how),
              keras.layers.BatchNormalization(name="norm"), keras.layers.Dense(1, name="last")]
    return keras.Sequential(layers, name="m")

def set_to(variable, value):
    array = np.array(variable, "float32")
    array[0] = value
    variable.assign(array)
    return lost_weight(one)

found = {}
one = model()
found["good"] = lost_weight(one)
norm = one.get_layer("norm")
found["mask"] = set_to(norm.moving_mean, -np.inf)
found["moving"] = set_to(norm.moving_mean, np.nan)
norm.moving_mean.assign([0, 0, 0])
found["infinite"] = set_to(one.get_layer("last").bias, np.inf)
one.get_layer("last").bias.assign([0])
found["first"] = set_to(one.get_layer("first").kernel, np.nan)

keras.config.set_dtype_policy("float16")
one = model()
one.get_layer("first").kernel.assign(np.full((2, 3), 60000.0))
found["overflow"] = lost_weight(one)
keras.config.set_dtype_policy("float32")
with tf.distribute.MirroredStrategy(["cpu:0"]).scope():
    one = model()
found["mirrored"] = [lost_weight(one), set_to(one.get_layer("last").kernel, np.nan)]
found["nothing"] = lost_weight(keras.Sequential([keras.Input((2,)), keras.layers.ReLU()]))

class Other:
    def agree(self, **wishes):
        found["asked"] = wishes
        return frozenset(["nan"])

def said(consensus, of, loss=0.5):
    try:
        FiniteWeights(of, consensus).check(1, 7, {"loss": tf.constant(loss)})
    except NanLoss as error:
        return [str(error), error.reason, error.epoch, error.step]

alone = Consensus(None, rank=0, count=1)
found["said"] = [said(alone, one), said(alone, model()), said(Other(), model()),
                 said(alone, one, np.nan)]
print(json.dumps(found))
"""


def found() -> Value:
    """What the child saw."""
    return json.loads(forked(CODE))


def test_a_weight_with_a_value_that_is_no_number_is_named() -> None:
    seen = found()
    assert (seen["good"], seen["nothing"]) == ("", "")
    assert (seen["first"], seen["infinite"]) == ("m/first/kernel", "m/last/bias")
    assert seen["mirrored"] == ["", "m/last/kernel"]


def test_what_is_not_trained_may_be_infinite_and_not_nan() -> None:
    assert (found()["mask"], found()["moving"]) == ("", "m/norm/moving_mean")


def test_a_sum_that_overflows_loses_nothing() -> None:
    assert found()["overflow"] == ""


def test_it_is_agreed_on_with_the_other_workers() -> None:
    seen = found()
    alone, good, other, loss = seen["said"]
    assert good is None
    text = "m/last/kernel is not finite at step 7 of epoch 2, though the loss is a number"
    assert alone == [text, "NaN weights", 2, 7]
    assert other[0].startswith("a weight of another worker is not finite")
    assert loss == ["loss is nan at step 7 of epoch 2", "NaN loss", 2, 7]
    assert seen["asked"] == {"always": True, "nan": False}


def test_on_jax_it_is_the_same() -> None:
    assert looked("loop")["hidden"][0] == "NaN weights"
