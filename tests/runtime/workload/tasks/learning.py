"""What every task's test of learning asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tfdyno.catalog.tasks import DIGITS, FASHION, find_task

Trained: TypeAlias = Callable[..., dict[str, Any]]
WAYS = ("whole", "shuffled", "still")


def assert_learns(name: str, trained: Trained, *, ways: tuple[str, ...] = WAYS) -> None:
    """The goal of the catalogue is reached on what data set there is."""
    goal, found = find_task(name).goal, trained(name, *ways)["whole"]
    print(name, found["data_set"], found["history"])  # shown with -s, and when it fails
    assert found["data_set"] in {FASHION, DIGITS}
    assert found["samples"] == goal.images
    assert goal.reached(found["history"], data_set=found["data_set"]), found["history"]


def assert_does_not_learn(
    name: str, how: str, trained: Trained, *, ways: tuple[str, ...] = WAYS
) -> None:
    """A training that is broken misses the goal."""
    found = trained(name, *ways)[how]
    history, data_set = found["history"], found["data_set"]
    assert not find_task(name).goal.reached(history, data_set=data_set), history
