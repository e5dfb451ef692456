"""A functional model run in stretches gives what Keras' own run gives."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from tests.runtime.remats import run_models

pytestmark = pytest.mark.tf
CODE = """
def long_skip():  # as a U-Net: what the first layers give is read at the end; two of each
    one, other = keras.Input((16,), name="one"), keras.Input((16,), name="other")
    ways, x = [], L.Concatenate()([one, other])
    for n in range(4):
        x = L.Dropout(0.1)(L.BatchNormalization()(L.Dense(16, activation="gelu")(x)))
        ways.append(x)
    for way in reversed(ways):
        x = L.BatchNormalization()(L.Dense(16, activation="gelu")(keras.ops.tanh(x) + way))
    model = keras.Model([one, other], [L.Dense(1)(x), L.Dense(1)(ways[1])])
    flat = keras.Input((32,))
    outputs = keras.ops.add(*model([flat[:, :16], flat[:, 16:]]))
    return keras.Model(flat, outputs), random.normal(size=(64, 32)).astype("f")

def words():
    inputs = keras.Input((12,), dtype="int32")
    x = L.Embedding(20, 16, mask_zero=True)(inputs)
    for _ in range(3):
        x = x + L.Dropout(0.2)(L.Dense(16)(L.LayerNormalization()(L.Dense(32, "gelu")(x))))
    outputs = L.Dense(1)(L.GlobalAveragePooling1D()(x))
    return keras.Model(inputs, outputs), random.integers(0, 20, size=(64, 12)).astype("int32")

result["long skip"] = same(long_skip)
result["words"] = same(words)
"""


@functools.cache
def results() -> dict[str, Any]:
    return run_models(CODE)


def test_skips_over_segments_several_inputs_and_several_outputs_stay_right() -> None:
    found = results()["long skip"]
    assert found["names"]
    assert found["apart"] <= 1e-6
    assert found["found"] == pytest.approx(found["losses"], rel=1e-6)


def test_embeddings_and_other_whole_numbers_stay_outside() -> None:
    assert all("embedding" not in name for name in results()["words"]["names"])
    assert results()["words"]["apart"] <= 1e-6
