"""runtime/replicas: a model alone is one replica in one process."""

from __future__ import annotations

from types import SimpleNamespace

from tfdyno.runtime.base.replicas import replicas, worker_count


def test_a_model_without_a_strategy_is_one_replica_in_one_process() -> None:
    assert replicas(SimpleNamespace(distribute_strategy=None)) == replicas(object()) == 1
    assert worker_count(None) == 1


def test_a_strategy_tells_its_replicas_and_processes() -> None:
    strategy = SimpleNamespace(num_replicas_in_sync=8, extended=SimpleNamespace(_num_workers=2))
    assert replicas(SimpleNamespace(distribute_strategy=strategy)) == 8
    assert worker_count(strategy) == 2
    assert worker_count(SimpleNamespace(extended=SimpleNamespace(_num_workers=0))) == 1
