"""train_jax/loop: devices that hold something else than the others are found and named."""

from __future__ import annotations

from tests.runtime.jaxes import looked


def test_a_part_that_differs_between_devices_is_an_error() -> None:
    found = looked("ranks")
    assert found["same"] is None
    assert found["data"] is None
    assert found["drifted"].startswith("the weights of worker 0 have drifted apart: 1 parts")


def test_the_ones_without_the_majority_are_named() -> None:
    assert looked("ranks")["odd"] == [[2], [0, 1], [0]]
