"""Models with their data on the way to training, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.trainings import MODEL, Run, all_trained

pytestmark = pytest.mark.tf
DATA = MODEL + (
    "slices = tf.data.Dataset.from_tensor_slices((x, y))\n"
    "def arrays():\n"
    "    return model(), (x, y)\n"
    "def data():\n"
    "    return slices.batch(10)\n"
    "def whole():\n"
    "    return slices.batch(10, drop_remainder=True).prefetch(1)\n"
    "def unbatched():\n"
    "    return slices\n"
    "def endless():\n"
    "    return slices.batch(8).repeat()\n"
    "def unknown():\n"
    "    return slices.batch(8).filter(lambda a, b: True)\n"
    "def nothing():\n"
    "    return slices.batch(8).filter(lambda a, b: False)\n"
    "def empty():\n"
    "    return slices.take(0).batch(8)\n"
    "def no_rows():\n"
    "    return x[:0], y[:0]\n"
    "def tiny():\n"
    "    return model(), slices.batch(1)\n"
    "def broken():\n"
    "    def rows():\n"
    "        for number in range(20):\n"
    "            if number == 5:\n"
    "                raise ValueError('row 5 is broken')\n"
    "            yield x[:8], y[:8]\n"
    "    signature = (tf.TensorSpec((8, 8)), tf.TensorSpec((8, 1)))\n"
    "    return tf.data.Dataset.from_generator(rows, output_signature=signature)\n"
    "def fitted():\n"
    "    m = model()\n"
    "    m.fit(x, y)\n"
    "    return m, (x, y)\n"
)
EIGHT = {"batch_size": 8}
RUNS = {
    "arrays": Run(code=DATA, function="arrays", recipe=EIGHT, settings={"epochs": 2}),
    "cut": Run(code=DATA, function="model:data", recipe={"batch_size": 24}),
    "whole": Run(code=DATA, function="model:whole", recipe={"batch_size": 24}),
    "unbatched": Run(code=DATA, function="model:unbatched", recipe=EIGHT),
    "endless": Run(code=DATA, function="model:endless", settings={"steps_per_epoch": 3}),
    "unknown": Run(code=DATA, function="model:unknown"),
    "nothing": Run(code=DATA, function="model:nothing"),
    "empty": Run(code=DATA, function="model:empty"),
    "no_rows": Run(code=DATA, function="model:no_rows"),
    "no_data": Run(code=DATA, function="model"),
    "tiny": Run(code=DATA, function="tiny", recipe={"strategy": "mirrored", "devices": 2}),
    "broken": Run(code=DATA, function="model:broken"),
    "fitted": Run(code=DATA, function="fitted"),
    "application": Run(reference="keras:MobileNetV2"),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("load")
    data = folder / "arrays" / "train.py"
    runs = {
        **RUNS,
        "named": Run(code=DATA, function="model", data=f"{data}:data"),
    }
    return all_trained(folder, runs)


@pytest.mark.parametrize(
    ("name", "steps"),
    [("arrays", 16), ("cut", 3), ("whole", 2), ("endless", 3), ("unknown", 8), ("named", 7)],
)
def test_the_data_is_batched_as_asked(found: dict[str, Any], name: str, steps: int) -> None:
    assert found[name]["outcome"]["steps"] == steps


def test_epochs_of_the_command_line_hold(found: dict[str, Any]) -> None:
    outcome = found["arrays"]["outcome"]
    assert outcome["epochs"] == len(outcome["history"]["loss"]) == 2
    assert outcome["history"]["loss"][1] < outcome["history"]["loss"][0]


def test_how_a_dataset_was_batched_anew_is_told(found: dict[str, Any]) -> None:
    note = "The last batch() of the dataset makes batches of another size."
    assert note in found["cut"]["outcome"]["notes"]


def test_a_fit_inside_the_function_is_left_out_and_named(found: dict[str, Any]) -> None:
    assert "Left out of the script: fit." in found["fitted"]["outcome"]["notes"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("unbatched", "the dataset of model is not batched"),
        ("nothing", "the data of model is empty"),
        ("empty", "the data of model is empty"),
        ("no_rows", "the data of model is empty"),
        ("no_data", "model brings no data, and train needs data; return (model, data)"),
        ("tiny", "a batch of 1 cannot be shared by 2 replicas"),
        ("application", "MobileNetV2 brings no data, and train needs data"),
        ("broken", "train.py:model:broken failed: line 33: ValueError: row 5 is broken"),
    ],
)
def test_what_cannot_be_trained_on_is_told(found: dict[str, Any], name: str, text: str) -> None:
    assert text in found[name]["refused"]
    assert found[name]["exit_code"] == 2
