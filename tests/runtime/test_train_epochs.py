"""A resumed training goes on with the very next batch, whatever gives the data."""

from __future__ import annotations

import pytest
from tests.runtime.training_child import case

pytestmark = pytest.mark.tf


@pytest.mark.parametrize("name", ["no_length", "generator", "sequence", "part_of_epoch"])
def test_the_order_of_the_data_goes_on(name: str) -> None:
    found = case("training_single", f"resumed_{name}")["step"]
    assert found["stopped"] == "SIGTERM"
    assert found["at"] == 14
    assert found["from"]
    assert found["history"]
    assert found["apart"] == 0.0
    assert found["counts"]
