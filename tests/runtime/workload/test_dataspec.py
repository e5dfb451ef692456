"""Shapes and types of what ``fit`` was given, from arrays, generators and PyDatasets."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import Validation
from tfdyno.runtime.workload.dataspec import (
    DataSpec,
    Leaf,
    leaves,
    of_batch,
    of_dataset,
    of_fit,
    validation_of,
    with_batch_size,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

IMAGES = Leaf(shape=(8, 8, 3), dtype="float32")
LABELS = Leaf(shape=(), dtype="int32")


def images(samples: int) -> np.ndarray[Any, Any]:
    return np.zeros((samples, 8, 8, 3), np.float32)


def labels(samples: int) -> np.ndarray[Any, Any]:
    return np.zeros(samples, np.int64)


def test_arrays_are_split_into_batches_of_32_as_keras_does() -> None:
    found = of_fit({"x": images(1000), "y": labels(1000), "epochs": 3})
    assert found == DataSpec(x=IMAGES, y=LABELS, batch_size=32, samples_per_epoch=1000, epochs=3)


def test_the_batch_and_the_part_for_validation_are_the_callers() -> None:
    found = of_fit({"x": images(101), "batch_size": 16, "validation_split": 0.1})
    assert found.batch_size == 16
    assert found.samples_per_epoch == 90  # 101 - ceil(10.1)
    assert found.epochs == 1


def test_steps_per_epoch_decide_the_length() -> None:
    found = of_fit({"x": images(1000), "batch_size": 20, "steps_per_epoch": 7})
    assert found.samples_per_epoch == 140


@pytest.mark.parametrize(
    ("kind", "narrower"),
    [("float64", "float32"), ("int64", "int32"), ("uint64", "uint32"), ("float16", "float16"),
     ("uint8", "uint8"), ("bool", "bool")],
)  # fmt: skip
def test_wide_types_are_narrowed_as_keras_does(kind: str, narrower: str) -> None:
    assert of_batch(np.zeros((4, 2), kind)).x == Leaf(shape=(2,), dtype=narrower)


def test_structures_keep_their_form() -> None:
    two = {"image": images(4), "extra": [labels(4), labels(4)]}
    found = of_batch(two, (labels(4),))
    assert found.x == {"image": IMAGES, "extra": [LABELS, LABELS]}
    assert found.y == (LABELS,)
    assert found.batch_size == 4


def test_lists_of_numbers_are_one_array() -> None:
    found = of_fit({"x": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], "y": [0, 1, 0]})
    assert found.x == Leaf(shape=(2,), dtype="float32")
    assert found.y == LABELS
    assert found.samples_per_epoch == 3


def test_class_weights_are_weights_of_samples() -> None:
    found = of_fit({"x": images(8), "y": labels(8), "class_weight": {0: 1.0}})
    assert found.sample_weight == Leaf(shape=(), dtype="float32", name="class_weight")
    own = of_fit({"x": images(8), "y": labels(8), "sample_weight": np.ones(8, np.float32),
                  "class_weight": {0: 1.0}})  # fmt: skip
    assert own.sample_weight == Leaf(shape=(), dtype="float32")


def generator(samples: int) -> Iterator[tuple[Any, Any]]:
    while True:
        yield images(samples), labels(samples)


def test_a_generator_is_asked_for_one_batch_and_has_no_length() -> None:
    found = of_fit({"x": generator(24)})
    assert (found.x, found.y, found.batch_size) == (IMAGES, LABELS, 24)
    assert found.samples_per_epoch == 0
    assert of_fit({"x": generator(24), "steps_per_epoch": 10}).samples_per_epoch == 240


def test_a_dataset_of_known_length_has_samples() -> None:
    class Sequence:  # the interface of keras.utils.PyDataset
        num_batches = 5

        def __getitem__(self, index: int) -> tuple[Any, Any]:
            return images(6), labels(6)

    found = of_dataset(Sequence())
    assert (found.batch_size, found.samples_per_epoch) == (6, 30)
    assert found.x == IMAGES


def test_a_tuple_of_arrays_is_inputs_targets_and_weights() -> None:
    found = of_dataset((images(64), labels(64), np.ones(64)))
    assert (found.x, found.y) == (IMAGES, LABELS)
    assert found.sample_weight == Leaf(shape=(), dtype="float32")
    assert found.samples_per_epoch == 64


def test_a_batch_without_targets_has_none() -> None:
    assert of_batch(images(2)) == DataSpec(x=IMAGES, batch_size=2)


@pytest.mark.parametrize("data", [3, None, object()])
def test_what_keras_does_not_train_on_is_told_with_its_type(data: object) -> None:
    with pytest.raises(UsageError) as told:
        of_fit({"x": data})
    assert told.value.what == "fit was called with data that has no first dimension"
    assert type(data).__name__ in told.value.why


def test_ragged_tensors_are_refused_with_what_to_do() -> None:
    class Ragged:  # the interface of tf.RaggedTensor
        ragged_rank, shape, dtype = 1, (4, None), np.dtype("int32")

    with pytest.raises(UsageError, match=r"the dataset has ragged tensors: .* pad them to one"):
        of_batch(Ragged())


@given(
    samples=st.integers(1, 200), batch=st.integers(1, 64), share=st.sampled_from([0.0, 0.1, 0.25])
)
def test_training_and_validation_samples_are_all_samples(
    samples: int, batch: int, share: float
) -> None:
    found = of_fit({"x": images(samples), "batch_size": batch, "validation_split": share})
    held_back = samples - found.samples_per_epoch
    assert samples * share <= held_back < samples * share + 1
    assert found.batch_size == batch


def test_only_as_much_of_a_generator_is_taken_as_is_needed() -> None:
    counted = itertools.count()
    of_fit({"x": (images(2 + next(counted)) for _ in range(10))})
    assert next(counted) == 1


class Fives:
    """As ``keras.utils.PyDataset`` without Keras: seven batches of 5."""

    num_batches = 7

    def __getitem__(self, _index: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        return images(5), labels(5)


class Failing(Fives):
    def __getitem__(self, _index: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        raise FileNotFoundError("image-0.png")


def endless() -> Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    while True:
        yield images(4), labels(4)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, Validation(samples=0)),
        ({"validation_split": 0.1}, Validation(samples=11)),  # ceil(10.1)
        ({"validation_data": (images(40), labels(40))}, Validation(samples=40)),
        # data of its own wins over a split; 32 is Keras' own batch
        ({"validation_data": (images(40), labels(40)), "validation_split": 0.5,
          "validation_steps": 1}, Validation(samples=32)),
        ({"validation_data": (images(40), labels(40)), "batch_size": 16,
          "validation_batch_size": 8, "validation_steps": 3}, Validation(samples=24)),
        ({"validation_data": Fives()}, Validation(samples=35)),
        ({"validation_data": Fives(), "validation_steps": 2}, Validation(samples=10)),
        ({"validation_data": endless(), "validation_steps": 6}, Validation(samples=24)),
        ({"validation_data": endless()}, Validation(samples=None)),
        ({"validation_data": Failing()}, Validation(samples=None)),
        ({"validation_split": 0.1, "validation_freq": 5}, Validation(samples=11, every_epochs=5)),
        ({"validation_split": 0.1, "validation_freq": [1, 5]},
         Validation(samples=11, in_epochs=(1, 5))),
    ],
)  # fmt: skip
def test_validation_is_what_fit_was_told(arguments: dict[str, Any], expected: Validation) -> None:
    assert validation_of({"x": images(101), "y": labels(101), **arguments}) == expected


def test_data_for_validation_leave_the_training_data_whole() -> None:
    found = of_fit({"x": images(100), "validation_split": 0.5, "validation_data": images(7)})
    assert found.samples_per_epoch == 100


def test_leaves_are_found_in_the_order_of_the_structure() -> None:
    a, b, c = (Leaf(shape=(size,), dtype="f") for size in (1, 2, 3))
    assert list(leaves({"x": [a, (b,)], "none": None, "y": c})) == [a, b, c]


def test_a_batch_that_nothing_names_is_as_large_as_the_first() -> None:
    first = of_batch(images(12))
    open_size = DataSpec(x=IMAGES, read=lambda: first)
    assert with_batch_size(open_size).batch_size == 12
    assert with_batch_size(DataSpec(x=IMAGES)).batch_size == 0
    named = DataSpec(x=IMAGES, batch_size=8, read=lambda: first)
    assert with_batch_size(named).batch_size == 8
