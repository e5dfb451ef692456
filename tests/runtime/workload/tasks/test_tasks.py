"""Every task is what the catalogue says, and is built alike."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from typing import Any

import pytest

from tfdyno.catalog.gpus import find
from tfdyno.catalog.tasks import standard_tasks
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.choose.estimate import EstimateRequest, estimate
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.choose.trace import trace
from tfdyno.runtime.workload import tasks

every_name = pytest.mark.parametrize("name", standard_tasks())


def test_both_lists_have_the_same_names() -> None:
    assert list(tasks.MODULES) == list(standard_tasks())


@every_name
def test_a_task_is_what_the_catalogue_says(name: str, described: dict[str, Any]) -> None:
    built, told = described[name], standard_tasks()[name]
    assert built["parameter_count"] == told.parameter_count
    assert tuple(built["inputs"]) == told.inputs
    assert (built["optimizer"], built["rate"]) == (told.optimizer, told.rate)
    assert built["samples_per_epoch"] == told.samples_per_epoch
    assert built["goal_steps"] == told.goal.images // told.goal.batch_size


@every_name
def test_random_data_is_of_the_kind_of_real_data(name: str, described: dict[str, Any]) -> None:
    assert described[name]["random_kinds"] == described[name]["real_kinds"]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(UsageError, match="no standard task 'gpt'; known: bert-base, dlrm"):
        tasks.model_and_spec("gpt")


def test_a_task_is_traced_without_data() -> None:
    found = trace(parse_reference("task:resnet18-cifar10")).trace
    assert (found.path, found.title) == ("jax", "resnet18-cifar10")
    assert (found.script_batch_size, found.samples_per_epoch) == (128, 50_000)
    assert found.marker > 0
    assert (found.loss, found.optimizer) == ("sparse_categorical_crossentropy", "sgd")


def test_a_task_can_be_estimated_at_its_own_batch() -> None:
    request = EstimateRequest(workload=parse_reference("task:lstm"), gpus=(find("l4"),))
    assert estimate(request).estimates[0].batch_size == 512


BUILT = """
import json, sys
from tfdyno.runtime.workload import tasks
from tfdyno.core.base.errors import UsageError
random = tasks.build("lstm", seed=3)
again = tasks.build("lstm", seed=3)
real = tasks.build("lstm", batch_size=100, real=True, images=1000, seed=3)
epochs = [[y.numpy().tolist() for _, y in real.data] for _ in range(2)]
weights = [t.model.weights[0].numpy().sum().item() for t in (random, again, real)]
first, second = next(iter(random.data.skip(40)))[1], next(iter(again.data))[1]
try:
    tasks.build("lstm", batch_size=2000, real=True, images=1000)
except UsageError as error:
    refusal = str(error)
print("\\n" + json.dumps({
    "sizes": [random.batch_size, real.batch_size], "samples": real.samples_per_epoch,
    "names": [random.data_set, real.data_set], "evaluation": random.evaluation is None,
    "endless": int(random.data.cardinality()), "same": (first == second).numpy().all().item(),
    "weights": weights, "epochs": epochs, "refusal": refusal,
    "evaluated": sum(len(y) for _, y in real.evaluation),
    "goal_images": [tasks.goal_images("lstm"), tasks.goal_images("lstm", 512),
                    tasks.goal_images("bert-base")],
    "rates": [float(tasks.build("resnet18-cifar10", batch_size=b).model.optimizer.learning_rate)
              for b in (128, 32)],
}))
"""


@pytest.mark.tf
def test_building_a_task(described: dict[str, Any]) -> None:
    environment = {"CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(
        [sys.executable, "-c", BUILT], capture_output=True, text=True, env=environment, check=False
    )
    if "no real data set was found" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr[-3000:]
    built = json.loads(done.stdout.splitlines()[-1])
    assert built["sizes"] == [described["lstm"]["batch_sizes"][1], 100], "no GPU: that of a CPU"
    assert built["names"][0] == ""
    assert built["evaluation"]
    assert built["endless"] == -1, "random data never ends"
    assert built["same"], "and every batch of it is the same"
    assert built["weights"][0] == built["weights"][1] == built["weights"][2], "one seed, one start"
    assert built["samples"] == 1000
    assert built["evaluated"] == 250
    one, two = (sorted(itertools.chain(*epoch)) for epoch in built["epochs"])
    assert one == two
    assert built["epochs"][0] != built["epochs"][1], "every epoch has its own order"
    assert "1000 images of" in built["refusal"]
    assert "a batch of 2000 takes more" in built["refusal"]
    assert built["goal_images"] == [32 * 64, 32 * 512, 2 * 8], "one step of an epoch is not enough"
    assert built["rates"] == pytest.approx([0.1, 0.025])
