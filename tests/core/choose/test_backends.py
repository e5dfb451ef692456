"""The ways on one card are found by backend and execution."""

from __future__ import annotations

import pytest

from tfdyno.core.choose.backends import BackendsOnCard, BackendStep


def test_a_way_is_found_by_backend_and_execution() -> None:
    graph = BackendStep(backend="tensorflow", execution="graph")
    jax = BackendStep(backend="jax", execution="xla", obstacle="step")
    card = BackendsOnCard(gpu="t4", gpu_name="T4", steps=(graph, jax), verdict="unknown")
    assert card.step("jax", "xla") is jax
    with pytest.raises(StopIteration):
        card.step("tensorflow", "xla")
