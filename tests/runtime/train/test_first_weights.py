"""runtime/first_weights: what one training began with, for another of other types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.base.untyped import Model

pytestmark = pytest.mark.tf


def model(dtype: str, units: int = 3) -> Model:
    import keras

    layers = [keras.Input((4,)), keras.layers.Dense(units, dtype=dtype),
              keras.layers.BatchNormalization(dtype=dtype),
              keras.layers.Dropout(0.5, dtype=dtype)]  # fmt: skip
    return keras.Sequential(layers)


@pytest.mark.parametrize(("dtype", "ratio"), [("float32", 1e-6), ("bfloat16", 1e-2)])
def test_the_first_makes_the_file_and_the_next_begins_with_it(
    tmp_path: Path, dtype: str, ratio: float
) -> None:
    from tfdyno.runtime.train.first_weights import begin_with

    file = tmp_path / "first.npz"
    first, second = model("float64"), model(dtype)
    kept = [np.array(one) for one in first.get_weights()]
    begin_with(first, file)
    begin_with(second, file)
    for a, b, own in zip(kept, second.get_weights(), first.get_weights(), strict=True):
        np.testing.assert_array_equal(a, own)
        np.testing.assert_allclose(a.astype(float), b.astype(float), rtol=ratio, atol=1e-9)
    assert {str(one.dtype) for one in second.trainable_weights} == {dtype}


def test_a_model_of_other_shapes_begins_as_it_is(tmp_path: Path) -> None:
    from tfdyno.runtime.train.first_weights import begin_with

    begin_with(model("float32"), tmp_path / "first.npz")
    other = model("float32", units=5)
    before = [np.array(one) for one in other.get_weights()]
    begin_with(other, tmp_path / "first.npz")
    for a, b in zip(before, other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
