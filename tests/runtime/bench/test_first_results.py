"""First results of a run: what is kept, and which weights it begins with."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
from pathlib import Path
import tempfile
import keras, numpy as np
from tfdyno.core.base.errors import ToolError
from tfdyno.runtime.bench.first_results import FirstOf, loss_in, random_layers

def model(rate, units=3):
    layers = keras.layers.Dense(units), keras.layers.Dropout(rate), keras.layers.Dense(1)
    m = keras.Sequential(layers)
    m.compile("sgd", "mse")
    return m

x, y = np.ones((4, 2), "float32"), np.ones((4, 1), "float32")
file = Path(tempfile.mkdtemp()) / "first.npz"
first, second = model(0.5), model(0.5)
kept = FirstOf(first, (x, y), file)
FirstOf(second, (x, y), file)
result = {"equal": all(np.array_equal(a.numpy(), b.numpy()) for a, b in
                       zip(first.weights, second.weights))}
for step in range(1, 8):
    kept.stepped(step, {"mae": 9.0, "loss": float("nan") if step == 2 else 1.0 / step})
before = first.evaluate(x, y, verbose=0)
first.fit(x, y, epochs=20, verbose=0)
found = kept.finish()
result |= {"steps": found.steps, "values": found.values, "drawing": found.random_layers,
           "evaluated": found.evaluated, "before": before}
result["none"] = random_layers(model(0.0)), random_layers(keras.Sequential([keras.layers.LSTM(2)]))
result["losses"] = loss_in({"loss": np.float32(2.0)}), str(loss_in({})), loss_in({"crossing": 3})
try:
    FirstOf(model(0.0, units=5), (x, y), file)
except ToolError as error:
    result["refused"] = str(error)
forward = FirstOf(second, (x,), file)
forward.gave({"a": np.array([-1.0, 3.0]), "b": np.array([1.0])})
result["forward"] = forward.finish().values
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return dict(in_tensorflow(CODE))


def test_the_second_run_begins_with_the_weights_of_the_first(found: dict[str, Any]) -> None:
    assert found["equal"]


def test_losses_of_five_calls_are_kept_but_for_what_is_no_number(found: dict[str, Any]) -> None:
    assert found["steps"] == [1, 3, 4, 5, 6]
    assert found["values"] == [1.0, 1 / 3, 1 / 4, 1 / 5, 1 / 6]


def test_dropout_is_told_and_evaluated_from_the_first_weights(found: dict[str, Any]) -> None:
    assert [name.startswith("dropout") for name in found["drawing"]] == [True]
    assert found["evaluated"] == pytest.approx(found["before"], rel=1e-6)


def test_layers_that_draw_nothing_are_none_of_them(found: dict[str, Any]) -> None:
    assert found["none"] == [[], []]


def test_a_loss_is_read_from_what_a_step_told(found: dict[str, Any]) -> None:
    assert found["losses"] == [2.0, "nan", 3.0]


def test_a_model_of_other_shapes_is_refused(found: dict[str, Any]) -> None:
    assert "does not begin with the weights of the run before it" in found["refused"]


def test_a_forward_pass_keeps_the_mean_size_of_its_outputs(found: dict[str, Any]) -> None:
    assert found["forward"] == [1.5]  # the mean of 2 and 1
