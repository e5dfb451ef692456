"""The watch around a training's steps, on scripts with a planted cause."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.watched import grown, traced

pytestmark = pytest.mark.tf
QUIET = ("healthy", "floats", "keras", "instances")


def _of(name: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    found = {**grown(), **traced()}[name]
    return found["retraces"], found["growth"]


@pytest.mark.parametrize("name", QUIET)
def test_a_sound_training_gives_no_alarm(name: str) -> None:
    assert _of(name) == ([], [])


def test_tensorflow_is_as_it_was_afterwards() -> None:
    assert grown()["restored"] is traced()["restored"] is True


def test_the_watch_costs_little() -> None:
    # Measured on 2 loaded cores: 5.4 us per call. Here it shares the machine with other tests.
    assert grown()["added_per_call_s"] < 100e-6
    assert grown()["tensors"]["cost_s"] / 60 < 0.05
