"""Processes with parameter servers, started for real."""

from __future__ import annotations

import pytest
from tests.runtime.clusters import trained

pytestmark = pytest.mark.tf


def test_a_cluster_that_is_not_complete_is_told_with_the_address() -> None:
    said = trained()["incomplete"]
    assert said.startswith(
        "the cluster is not complete after 0 s: no answer of worker 0 (127.0.0.1:1)"
    )


def test_a_cluster_without_a_parameter_server_is_refused() -> None:
    assert trained()["without"] == "the cluster has no parameter server; name one as 'ps'."


def test_a_port_that_is_taken_is_told() -> None:
    said = trained()["taken"]
    assert said.startswith("worker 0 cannot serve 127.0.0.1:")
    assert said.endswith("; use a free port.")


def test_plain_keras_cannot_train_there() -> None:
    said = trained()["plain"]
    assert said.startswith("ValueError: To use this dataset, you need to pass this dataset to Cl")


def test_variables_lie_on_the_server() -> None:
    assert "/job:ps/" in trained()["together"]["where"]
