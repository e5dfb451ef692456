"""The table of standard tasks: whole, with sources, and kind to a wrong name."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tfdyno.catalog.tasks import DIGITS, FASHION, StandardTask, find_task, standard_tasks
from tfdyno.core.base.errors import UsageError

PUBLISHED_MILLIONS = {
    "bert-base": 109.5, "efficientnet-b0": 5.3, "resnet18-cifar10": 11.2, "resnet50-imagenet": 25.6
}  # fmt: skip
every_task = pytest.mark.parametrize("task", standard_tasks().values(), ids=standard_tasks())


def test_the_tasks_are_sorted_and_those_that_the_protocol_names() -> None:
    assert list(standard_tasks()) == [
        "bert-base", "dlrm", "efficientnet-b0", "lstm", "resnet18-cifar10", "resnet50-imagenet"
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "millions"), PUBLISHED_MILLIONS.items())
def test_a_known_model_has_as_many_weights_as_published(name: str, millions: float) -> None:
    assert round(find_task(name).parameter_count / 1e6, 1) == millions


@every_task
def test_a_task_says_where_it_and_its_goal_are_from(task: StandardTask) -> None:
    assert len(task.source) > 20
    assert "2026" in task.goal.source


@every_task
def test_a_goal_is_better_than_chance_and_takes_whole_batches(task: StandardTask) -> None:
    goal = task.goal
    digits = goal.value if goal.digits_value is None else goal.digits_value
    if goal.metric == "loss":
        assert 0 < goal.value < 0.5 * math.log(10), "a guess of ten equal classes"
        assert goal.value <= digits < 0.8 * math.log(10)
    else:
        chance = 0.5 if task is find_task("dlrm") else 0.1
        assert goal.metric in {"accuracy", "val_accuracy"}
        assert chance + 0.1 < goal.value < 1
        assert chance + 0.05 < digits <= goal.value
    assert goal.images % goal.batch_size == 0
    assert goal.images <= 1437, "the digits of scikit-learn have no more"


def test_a_goal_is_reached_by_its_last_epoch_only() -> None:
    goal = replace(find_task("lstm").goal, metric="accuracy", value=0.6)
    assert goal.reached({"accuracy": [0.1, 0.6]}, data_set=FASHION)
    assert not goal.reached({"accuracy": [0.7, 0.59]}, data_set=FASHION)


def test_a_loss_is_reached_from_above() -> None:
    goal = replace(find_task("lstm").goal, metric="val_loss", value=0.6)
    assert goal.reached({"val_loss": [2.3, 0.5]}, data_set=FASHION)
    assert not goal.reached({"val_loss": [0.5, 0.7]}, data_set=FASHION)


def test_digits_have_a_goal_of_their_own_where_they_are_learned_more_slowly() -> None:
    goal = replace(find_task("lstm").goal, metric="accuracy", value=0.6, digits_value=0.4)
    assert goal.reached({"accuracy": [0.5]}, data_set=DIGITS)
    assert not goal.reached({"accuracy": [0.5]}, data_set=FASHION)
    assert not replace(goal, digits_value=None).reached({"accuracy": [0.5]}, data_set=DIGITS)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("resnet18", "there is no standard task 'resnet18'; did you mean task:resnet18-cifar10?"),
        ("task:BERT", "there is no standard task 'BERT'; did you mean task:bert-base?"),
        ("gpt", "there is no standard task 'gpt'; known: bert-base, dlrm, efficientnet-b0, lstm"),
    ],
)
def test_a_wrong_name_is_one_sentence(name: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_task(name)
    assert str(caught.value).startswith(sentence)


def test_a_task_is_found_with_and_without_its_prefix() -> None:
    assert find_task("task:lstm") is find_task("lstm")
