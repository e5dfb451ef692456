"""Processes of a real cluster that are killed while they train."""

from __future__ import annotations

import pytest
from tests.runtime.clusters import trained

pytestmark = pytest.mark.tf


def test_without_one_worker_the_other_does_all_steps() -> None:
    found = trained()["one_left"]
    assert 100 <= found["updates"] <= 101  # the step that was under way may be done twice
    assert [name.partition(" (")[0] for name in found["missing"]] == ["worker 1"]


def test_without_any_worker_the_run_ends_with_a_sentence() -> None:
    found = trained()
    assert found["none_left"].startswith("no step was done for 2 s: worker 0 (127.0.0.1:")
    assert "do not answer any more; start the cluster again with --resume" in found["none_left"]
    assert found["none_left_s"] < 30
