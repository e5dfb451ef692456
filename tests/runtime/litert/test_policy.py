"""A model of mixed precision computes in float32 while it is converted, and not after."""

from __future__ import annotations

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
import keras
from keras import layers as L
from tfdyno.runtime.litert.policy import in_float32
result = {}
keras.config.set_dtype_policy("mixed_bfloat16")
mixed = keras.Sequential([keras.Input((4,)), L.Dense(2)])
keras.config.set_dtype_policy("float32")
with in_float32(mixed) as changed:
    result["inside"] = [changed, mixed.layers[0].compute_dtype]
result["after"] = mixed.layers[0].compute_dtype
plain = keras.Sequential([keras.Input((4,)), L.Dense(2)])
with in_float32(plain) as changed:
    result["unchanged"] = changed
"""


def test_mixed_precision_is_left_for_the_time_of_a_block() -> None:
    found = in_tensorflow(CODE)
    assert (found["inside"], found["after"]) == ([True, "float32"], "bfloat16")
    assert found["unchanged"] is False
