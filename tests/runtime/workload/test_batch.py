"""The batch of a step: what the model declares, what the data has, what the loss wants."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import Workload
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.choose.trace import trace
from tfdyno.runtime.workload import batch
from tfdyno.runtime.workload.dataspec import DataSpec, Leaf
from tfdyno.runtime.workload.workloads import Subject

if TYPE_CHECKING:
    from types import ModuleType

SCRIPTS = Path(__file__).parents[2] / "data" / "scripts"
TRAIN = Workload(reference="a.py:build", kind="function")
SERVE = Workload(reference="a.py:build", kind="function", mode="infer")


@pytest.fixture(scope="module")
def keras() -> ModuleType:
    """Keras on its JAX backend, chosen for the import alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERAS_BACKEND", "jax")
        import keras
    return keras


def classifier(keras: ModuleType, shape: tuple[int | None, ...], loss: str | None) -> object:
    x = keras.Input(shape, name="pixels")
    y = keras.layers.Dense(10)(keras.layers.GlobalAveragePooling2D()(x))
    model = keras.Model(x, y)
    if loss:
        model.compile("sgd", loss)
    return model


def of(
    model: object, workload: Workload = TRAIN, data: DataSpec | None = None
) -> list[batch.Batch]:
    subject = Subject(model=model, title="m", data=data, seconds_s=0.0)
    return batch.batches(subject, workload)


def test_a_sparse_loss_takes_integers_first_and_other_losses_what_the_model_gives(
    keras: ModuleType,
) -> None:
    sparse, _ = of(classifier(keras, (8, 8, 3), "sparse_categorical_crossentropy"))
    assert sparse.x == Leaf(shape=(8, 8, 3), dtype="float32", name="pixels")
    assert (sparse.y.shape, sparse.y.dtype) == ((), "int32")
    first = of(classifier(keras, (8, 8, 3), "mse"))[0]
    assert (first.y.shape, first.y.dtype) == ((10,), "float32")


def test_inference_and_a_model_without_loss_have_no_targets(keras: ModuleType) -> None:
    assert [one.y for one in of(classifier(keras, (8, 8, 3), "mse"), SERVE)] == [None]
    assert [one.y for one in of(classifier(keras, (8, 8, 3), None))] == [None]


def test_the_data_goes_before_what_the_model_declares(keras: ModuleType) -> None:
    data = DataSpec(
        x=Leaf(shape=(16, 16, 3), dtype="uint8"), y=Leaf(shape=(), dtype="int32"),
        sample_weight=Leaf(shape=(), dtype="float32"),
    )  # fmt: skip
    (found,) = of(classifier(keras, (None, None, 3), "mse"), TRAIN, data)
    assert found == batch.Batch(x=data.x, y=data.y, sample_weight=data.sample_weight)


def test_an_open_shape_is_asked_for_with_an_example(keras: ModuleType) -> None:
    with pytest.raises(UsageError) as told:
        of(classifier(keras, (None, None, 3), "mse"))
    assert told.value.what == ("the input pixels has the shape (None, None, 3) without the batch")
    assert told.value.remedy.endswith("for example --input-shape 224,224,3")


def test_a_given_shape_fills_the_open_one(keras: ModuleType) -> None:
    workload = Workload(reference="a.py:b", kind="function", input_shapes=((64, 64, 3),))
    found = of(classifier(keras, (None, None, 3), "mse"), workload)[0]
    assert found.x.shape == (64, 64, 3)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((64, 64, 4), "--input-shape 64,64,4 does not fit the input pixels"),
        ((64, 64), "--input-shape 64,64 does not fit the input pixels"),
    ],
)
def test_a_given_shape_that_does_not_fit_is_refused(
    keras: ModuleType, shape: tuple[int, ...], said: str
) -> None:
    workload = Workload(reference="a.py:b", kind="function", input_shapes=(shape,))
    with pytest.raises(UsageError, match=said):
        of(classifier(keras, (None, None, 3), "mse"), workload)


def test_a_shape_for_an_input_that_is_not_open_is_refused_unless_it_is_the_same(
    keras: ModuleType,
) -> None:
    model = classifier(keras, (8, 8, 3), "mse")
    other = Workload(reference="a.py:b", kind="function", input_shapes=((9, 9, 3),))
    with pytest.raises(UsageError, match="--input-shape 9,9,3 fits no input whose shape is open"):
        of(model, other)
    same = Workload(reference="a.py:b", kind="function", input_shapes=((8, 8, 3),))
    assert of(model, same)[0].x.shape == (8, 8, 3)


def test_several_outputs_have_the_targets_of_their_own_losses(keras: ModuleType) -> None:
    x = keras.Input((8,))
    outputs = {"kind": keras.layers.Dense(5)(x), "size": keras.layers.Dense(1)(x)}
    model = keras.Model(x, outputs)
    model.compile("sgd", {"kind": "sparse_categorical_crossentropy", "size": "mse"})
    targets = of(model)[0].y
    assert (targets["kind"].shape, targets["kind"].dtype) == ((), "int32")
    assert (targets["size"].shape, targets["size"].dtype) == ((1,), "float32")


def test_a_model_that_was_not_built_needs_a_shape(keras: ModuleType) -> None:
    class Own(keras.Model):  # type: ignore[name-defined]
        def call(self, x: object) -> object:
            return x

    with pytest.raises(UsageError, match=r"does not say what its input looks like: it is a sub"):
        of(Own())


def test_a_batch_in_the_inputs_is_part_of_the_model(keras: ModuleType) -> None:
    fixed = keras.Input((8,), batch_size=16)
    assert batch.baked_batch(keras.Model(fixed, keras.layers.Dense(2)(fixed))) == 16
    assert batch.baked_batch(classifier(keras, (8, 8, 3), None)) == 0


def test_every_size_of_weights_data_and_layers_is_found(keras: ModuleType) -> None:
    x = keras.Input((12,))
    hidden = keras.layers.Dense(37, name="hidden")(x)
    model = keras.Model(x, keras.layers.Dense(5)(keras.layers.Reshape((1, 37))(hidden)))
    data = batch.Batch(x=Leaf(shape=(12,), dtype="float32"), y=Leaf(shape=(7,), dtype="int32"))
    assert {12, 37, 5, 7} <= batch.dimensions(model, data)


def test_a_sequential_without_an_input_is_of_no_batch_once_its_targets_are_known(
    keras: ModuleType,
) -> None:
    model = keras.Sequential([keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    workload = Workload(reference="a.py:b", kind="function", input_shapes=((5,),))
    assert of(model, workload)[0].y.shape == (3,)
    assert batch.baked_batch(model) == 0


def test_open_data_have_the_sizes_of_the_model_and_of_what_it_gives(keras: ModuleType) -> None:
    data = DataSpec(
        x=Leaf(shape=(None, None, 3), dtype="float32"), y=Leaf(shape=(None,), dtype="float32")
    )
    (found,) = of(classifier(keras, (8, 8, 3), "mse"), TRAIN, data)
    assert (found.x.shape, found.y.shape, found.notes) == ((8, 8, 3), (10,), ())


def test_what_the_model_leaves_open_too_is_as_in_the_first_batch_and_told(
    keras: ModuleType,
) -> None:
    open_size = Leaf(shape=(None,), dtype="float32")
    first = DataSpec(x=Leaf(shape=(16, 16, 3), dtype="float32"), y=Leaf(shape=(10,), dtype="f"),
                     sample_weight=Leaf(shape=(4,), dtype="f"))  # fmt: skip
    data = DataSpec(x=Leaf(shape=(None, None, 3), dtype="float32"), y=first.y,
                    sample_weight=open_size, read=lambda: first)  # fmt: skip
    (found,) = of(classifier(keras, (None, None, 3), "mse"), TRAIN, data)
    assert (found.x.shape, found.y.shape, found.sample_weight.shape) == ((16, 16, 3), (10,), (4,))
    (note,) = found.notes
    assert note.endswith("first batch: (None, None, 3) as (16, 16, 3), (None,) as (4,).")


# Steps and channels of one sample, or the two windows by their names.
WINDOWS = {
    "with_input": ([[20, 3]], 0),
    "without_input": ([[20, 3]], 1),
    "in_sequence": ([[20, 3]], 1),
    "of_a_generator": ([[20, 3]], 0),
    "by_name": ([[20, 2], [20, 3]], 0),
}


@pytest.mark.tf
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_of_open_length_are_traced_with_the_batch_of_their_data(name: str) -> None:
    shapes, read = WINDOWS[name]
    traced = trace(parse_reference(f"{SCRIPTS / 'windows.py'}:{name}")).trace
    inputs = [list(tensor.shape[1:]) for tensor in traced.tensors if tensor.role == "input"]
    assert sorted(inputs) == shapes
    assert traced.script_batch_size == 16
    assert traced.marker
    assert sum("first batch" in told for told in traced.warnings) == read
    assert traced.path == ("tensorflow" if name == "of_a_generator" else "jax")


@pytest.mark.tf
def test_data_of_unknown_rank_are_refused_with_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"how many dimensions.*an output_signature"):
        trace(parse_reference(f"{SCRIPTS / 'windows.py'}:of_any_rank"))
