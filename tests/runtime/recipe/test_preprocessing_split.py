"""Models cut after their preprocessing layers: the same training, without tables in the step."""

from __future__ import annotations

import pytest
from tests.runtime.prepared import prepared

NAMES = ["features", "sequential", "glued", "half"]
pytestmark = pytest.mark.tf


@pytest.mark.parametrize("name", NAMES)
def test_training_gives_exactly_the_same(name: str) -> None:
    found = prepared()[name]
    assert found["got"] == found["wanted"]
    assert len(found["wanted"]["val_loss"]) == 3
    assert len(set(found["wanted"]["loss"])) == 3
    assert found["weights"] == 0.0
    assert found["predicted"] == 0.0


def test_no_text_reaches_the_step() -> None:
    assert prepared()["features"]["kinds"] == ["<dtype: 'float32'>", "<dtype: 'int64'>"]
    assert prepared()["sequential"]["kinds"] == ["<dtype: 'int64'>"]
    assert prepared()["half"]["kinds"] == ["<dtype: 'bfloat16'>"]


def test_layers_at_the_inputs_are_moved_and_what_is_between_them() -> None:
    assert set(prepared()["features"]["moved"]) == {"look", "words", "norm", "hash"}
    assert prepared()["sequential"]["moved"] == ["words"]
    assert "again" in prepared()["glued"]["moved"]
    assert prepared()["glued"]["before"] == 1


@pytest.mark.parametrize("name", NAMES)
def test_the_model_is_the_users_in_callbacks_and_afterwards(name: str) -> None:
    found = prepared()[name]
    assert found["loaded"] == 0.0  # saved whole: the file takes text
    assert not found["touched"]
    assert found["left"] == []


@pytest.mark.parametrize("name", NAMES)
def test_xla_compiles_the_rest_and_learns_the_same(name: str) -> None:
    found = prepared()[name]
    assert found["jit"] is True
    assert found["jit_after"] is False
    # XLA rounds otherwise, and Adam's first updates take only the sign of a small gradient.
    close = 2e-2 if name == "half" else 1e-3
    assert found["xla"]["val_loss"] == pytest.approx(found["wanted"]["val_loss"], rel=close)
