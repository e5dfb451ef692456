"""Random batches for models that bring no data."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tfdyno.core.choose.workload import Workload
from tfdyno.runtime.workload.synthetic import batch_for

WORKLOAD = Workload(reference="models.py:build", kind="function")


def model(loss: str, units: int, activation: str | None = None) -> keras.Model:
    built = keras.Sequential([keras.Input((6,)), keras.layers.Dense(units, activation=activation)])
    built.compile("sgd", loss)
    return built


def test_sparse_labels_are_classes_of_the_output() -> None:
    (x, y), spec = batch_for(model("sparse_categorical_crossentropy", 5, "softmax"), WORKLOAD, 64)
    assert (x.shape, x.dtype) == ((64, 6), np.float32)
    assert set(y.tolist()) == {0, 1, 2, 3, 4}
    assert spec.batch_size == 64


def test_labels_of_several_classes_are_one_hot() -> None:
    (_, y), _ = batch_for(model("categorical_crossentropy", 5, "softmax"), WORKLOAD, 64)
    assert y.shape == (64, 5)
    assert set(y.sum(axis=1).tolist()) == {1.0}


@pytest.mark.parametrize("loss", ["binary_crossentropy", "mse"])
def test_a_single_output_is_zero_or_one(loss: str) -> None:
    (_, y), _ = batch_for(model(loss, 1, "sigmoid"), WORKLOAD, 64)
    assert y.shape == (64, 1)
    assert set(y.ravel().tolist()) == {0.0, 1.0}


def test_ids_lie_within_the_smallest_table() -> None:
    ids = keras.Input((7,), dtype="int32")
    built = keras.Model(ids, keras.layers.Dense(1)(keras.layers.Embedding(9, 4)(ids)))
    built.compile("sgd", "mse")
    (x, _), _ = batch_for(built, WORKLOAD, 64)
    assert x.dtype == np.int32
    assert (x.min(), x.max()) == (0, 8)


def test_every_run_gets_the_same_values() -> None:
    built = model("mse", 2)
    first, second = (batch_for(built, WORKLOAD, 8)[0] for _ in range(2))
    assert (first[0] == second[0]).all()
