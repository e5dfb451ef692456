"""runtime/export_model: one request, every stage, and nothing written after an obstacle."""

from __future__ import annotations

import pytest
from tests.runtime.exports_seen import facts

pytestmark = pytest.mark.tf


def test_a_request_is_answered_with_the_comparison() -> None:
    assert facts()["handled"] == [14, 0.0]


def test_an_obstacle_is_the_whole_answer() -> None:
    assert facts()["refused"] == ["words"]


def test_what_pytorch_is_compared_with_is_kept_as_files() -> None:
    found = {"judged": "output_0", "amounts": [], "batch": 0, "data": ""}
    assert facts()["for_torch"] == [found, ["inputs.npz", "outputs.npz", "truth.npz"]]
