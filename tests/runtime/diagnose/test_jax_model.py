"""What a model on JAX tells of itself."""

from __future__ import annotations

import keras
import pytest
from tests.runtime.jax_looks import facts

from tfdyno.runtime.diagnose.jax_model import uncompiled, waited_for


def test_layers_that_jax_cannot_compile_are_named() -> None:
    layers = [keras.Input((8, 8, 1)), keras.layers.RandomCrop(6, 6, name="crop"),
              keras.layers.RandomFlip(name="flip")]  # fmt: skip
    assert list(uncompiled(keras.Sequential(layers))) == ["crop (RandomCrop)"]


def test_callbacks_that_keras_waits_for_have_a_method_of_their_own() -> None:
    class Report(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: object = None) -> None:
            """Look at each batch."""

    class Apart(Report):
        async_safe = True

    class Epochs(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: object = None) -> None:
            """Look at each epoch."""

    found = waited_for([Epochs(), Report(), Apart(), keras.callbacks.History()])
    assert [one.partition(" in ")[0] for one in found] == ["Report"]


@pytest.mark.tf
def test_a_step_that_runs_is_told_as_it_is() -> None:
    seen = facts("clean")
    assert seen.parameter_bytes == 4 * (64 * 2048 + 2048 + 2048 + 1)
    assert seen.devices == {"CPU:0": seen.variable_count}
    assert (seen.precision, seen.float64, seen.python_steps) == ("float32", (), ())


@pytest.mark.tf
def test_python_in_a_compiled_step_is_told_with_its_line() -> None:
    assert facts("calls_python").python_steps == ("pure_callback in calls_python.py:20",)


@pytest.mark.tf
def test_a_step_left_uncompiled_for_a_layer_is_eager() -> None:
    seen = facts("turns")
    assert (seen.execution, seen.uncompiled_layers) == ("eager", ("turn (RandomRotation)",))
