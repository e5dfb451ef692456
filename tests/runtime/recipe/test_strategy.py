"""The strategy of a recipe, and the place of this process in a cluster."""

from __future__ import annotations

import json

import pytest
from tests.runtime.training_child import case

from tfdyno.runtime.recipe.strategy import is_chief, worker_count, worker_rank

WORKERS = {"worker": ["a:1", "b:1", "c:1"]}
LED = {"chief": ["a:1"], "worker": ["b:1", "c:1"]}
SERVERS = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}


@pytest.mark.parametrize(
    ("cluster", "role", "index", "expected"),
    [
        (WORKERS, "worker", 0, (True, 0, 3)),
        (WORKERS, "worker", 2, (False, 2, 3)),
        (LED, "chief", 0, (True, 0, 3)),
        (LED, "worker", 1, (False, 2, 3)),
        (SERVERS, "chief", 0, (True, 0, 1)),
        (SERVERS, "worker", 0, (False, 0, 1)),
        (SERVERS, "ps", 0, (False, 0, 1)),
    ],
)
def test_the_place_in_a_cluster_is_read_from_tf_config(
    cluster: dict[str, list[str]], role: str, index: int, expected: tuple[bool, int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    task = {"cluster": cluster, "task": {"type": role, "index": index}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(task))
    assert (is_chief(), worker_rank(), worker_count()) == expected


@pytest.mark.parametrize("text", ["", "{}"])
def test_one_alone_is_the_chief(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", text)
    assert (is_chief(), worker_rank(), worker_count()) == (True, 0, 1)


@pytest.mark.tf
def test_no_strategy_is_made_for_one_device() -> None:
    assert case("training_parts", "strategy")["none"] == [None, None]


@pytest.mark.tf
def test_several_workers_need_to_know_of_each_other() -> None:
    assert "needs TF_CONFIG" in case("training_parts", "strategy")["without"]
