"""Workloads of every kind with their real data, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import MODEL, Run, all_measured, in_tensorflow

pytestmark = pytest.mark.tf
BROKEN = MODEL + (
    "def batches():\n"
    "    for number in range(100):\n"
    "        if number == 5:\n"
    "            raise ValueError('sample 5 is broken')\n"
    "        yield x[:8], y[:8]\n"
    "signature = (tf.TensorSpec((8, 8)), tf.TensorSpec((8, 4)))\n"
    "data = tf.data.Dataset.from_generator(batches, output_signature=signature)\n"
    "try:\n"
    "    model().fit(data)\n"
    "except Exception:\n"
    "    print('swallowed')\n"
)
FIT = MODEL + "model().fit(x, y)\n"
DATA = "def data():\n    return tf.data.Dataset.from_tensor_slices((x, y)).batch(20)\n"
EARLIER = MODEL + (
    "first = model()\n"
    "history = first.fit(x, y, epochs=2).history['loss']\n"
    "first.evaluate(x, y)\n"
    "assert history == [0.0, 0.0]\n"
    "model().fit(x, y, batch_size=50)\n"
)
RUNS = {
    "broken": Run(code=BROKEN),
    "short": Run(code=MODEL + "model().fit((part for part in [(x[:8], y[:8])] * 7))\n"),
    "no_data": Run(code=MODEL, function="model"),
    "infer": Run(code=MODEL + DATA, function="model:data", mode="infer"),
    "no_fit": Run(code=MODEL + "model()\n"),
    "real": Run(code=FIT, protocol={"data": "real"}),
    "typo": Run(code=MODEL, function="modle"),
    "earlier": Run(code=EARLIER),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return all_measured(tmp_path_factory.mktemp("load"), RUNS)


def test_a_failure_while_steps_run_names_step_and_line_though_the_script_hides_it(
    found: dict[str, Any],
) -> None:
    text = found["broken"]["refused"]
    assert "failed at step " in text
    assert "line 10: ValueError: sample 5 is broken" in text


def test_data_that_ends_early_is_told_with_the_number_of_steps(found: dict[str, Any]) -> None:
    text = found["short"]["refused"]
    assert text.startswith("the data ended after 7 steps: 10 samples of the steady state")
    assert text.endswith("repeat it, or use --data synthetic.")


def test_a_function_without_data_gets_one_random_batch(found: dict[str, Any]) -> None:
    task = found["no_data"]["task"]
    assert "model brings no data: one random batch again and again." in task["notes"]
    assert task["batch_size"] == 32


def test_inference_of_a_function_with_data(found: dict[str, Any]) -> None:
    task = found["infer"]["task"]
    assert (task["mode"], task["batch_size"]) == ("infer", 20)
    assert len(found["infer"]["run"]["samples_s"]) >= 10


def test_a_script_without_fit_is_told(found: dict[str, Any]) -> None:
    assert "has no call 1 of fit: it ended without fit" in found["no_fit"]["refused"]


def test_real_data_is_for_standard_tasks(found: dict[str, Any]) -> None:
    assert found["real"]["refused"].startswith("--data real is for standard tasks")


def test_a_name_with_a_typo_is_told(found: dict[str, Any]) -> None:
    assert found["typo"]["refused"].endswith("has no function 'modle'; did you mean model?")


def test_the_first_call_of_fit_counts(found: dict[str, Any]) -> None:
    assert found["earlier"]["task"]["batch_size"] == 32


EPOCHS = """
from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.measurement import Protocol
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.choose.workload import Workload
from tfdyno.runtime.bench.fit import Plan
from tfdyno.runtime.bench.load import _standard_task

def called(epochs):
    plan = Plan(workload=Workload(reference="task:lstm", kind="task"), clock=None, progress=print,
                recipe=Recipe(batch_size=8), protocol=Protocol(data="real", epochs=epochs))
    call = _standard_task(plan)
    return call.notes, int(call.arguments["x"].cardinality())

try:
    result = {"epochs": called(2), "steady": called(0)}
except UsageError as error:
    result = {"missing": str(error)}
"""


def test_epochs_of_a_standard_task_are_as_short_as_those_of_its_goal() -> None:
    found = in_tensorflow(EPOCHS)
    if "missing" in found:
        pytest.skip(found["missing"])
    (note,), steps = found["epochs"]
    assert note.startswith("Epochs are short: 256 images of ")
    assert steps == 32, "1,024 images in batches of 32 reach the goal"
    notes, all_steps = found["steady"]
    assert not notes
    assert all_steps > 100, "without epochs it is all the data that there is"
