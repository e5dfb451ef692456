"""Recurrent layers are written out for 8 bits; what cannot be is refused in words."""

from __future__ import annotations

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
import keras, tensorflow as tf
from keras import layers as L
from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.litert.loops import without_loops
result = {}
x = keras.Input((4,), name="x")
steps = keras.Input((5, 4), name="seq")
both = L.Bidirectional(L.GRU(3), name="both")
recurrent = keras.Model(steps, both(steps))
with without_loops(recurrent):
    result["unrolled"] = [both.forward_layer.unroll, both.backward_layer.unroll]
result["rolled"] = [both.forward_layer.unroll, both.backward_layer.unroll]
open_steps = keras.Input((None, 4), name="seq")
endless = keras.Model(open_steps, L.LSTM(3)(open_steps))
class Own2(L.Layer):
    def call(self, inputs):
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (0, inputs))[1]
looped = keras.Model(x, Own2(name="own_loop")(x))
for name, model in (("endless", endless), ("looped", looped)):
    try:
        with without_loops(model):
            result[name] = "nothing"
    except UsageError as error:
        result[name] = str(error)
"""


def test_loops_are_written_out_for_the_time_of_a_block() -> None:
    found = in_tensorflow(CODE)
    assert found["unrolled"] == [True, True]
    assert found["rolled"] == [False, False]
    assert "cannot be written out for int8" in found["endless"]
    assert "int8 is not possible with the loop at" in found["looped"]
