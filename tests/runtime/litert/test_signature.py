"""Inputs have names, also where the model gives none; its layers are found inside of others."""

from __future__ import annotations

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
import keras, numpy as np
from keras import layers as L
from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.litert.signature import input_specs, layer_names, signature_of
class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = L.Dense(3, name="inner")
    def call(self, inputs):
        return self.dense(inputs)
own = Own()
result = {}
try:
    signature_of(own)
except UsageError as error:
    result["uncalled"] = str(error)
own(np.zeros((2, 4), "float32"))
spec = input_specs(own)["input_0"]
result["own"] = [list(spec.shape), str(spec.dtype)]
inner = keras.Sequential([keras.Input((4,)), L.Dense(2, name="deep")], name="block")
x = keras.Input((4,), name="x")
nested = keras.Model({"x": x}, L.Dense(1, name="top")(inner(x)))
result["nested"] = [list(input_specs(nested)), sorted(layer_names(nested))]
result["fixed"] = list(keras.tree.flatten(signature_of(nested, 1))[0].shape)
"""


def test_inputs_and_layers_of_a_model_have_names() -> None:
    found = in_tensorflow(CODE)
    assert "call the model once on a batch before it is saved" in found["uncalled"]
    assert found["own"] == [[None, 4], "float32"]
    assert found["nested"][0] == ["x"]
    assert {"block", "deep", "top"} <= set(found["nested"][1])
    assert found["fixed"] == [1, 4]
