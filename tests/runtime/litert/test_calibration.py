"""Samples for 8 bits: single or in batches, thinned out evenly, refused where they do not fit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.litert import calibration as litert_calibration
from tfdyno.runtime.litert.calibration import MOST, calibration_of

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value


@pytest.fixture(autouse=True)
def two_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of two inputs, without Keras."""
    specs = {
        "a": SimpleNamespace(shape=(None, 2), dtype="float32"),
        "b": SimpleNamespace(shape=(None,), dtype="int32"),
    }
    monkeypatch.setattr(litert_calibration, "input_specs", lambda _model: specs)


def test_batches_and_single_samples_become_samples() -> None:
    batch = {"a": np.arange(6.0).reshape(3, 2), "b": np.array([1, 2, 3])}
    found = calibration_of(None, [batch, {"a": np.array([8.0, 9.0]), "b": np.array(4)}])
    assert len(found) == 4
    assert [one["a"].tolist() for one in found] == [[[0, 1]], [[2, 3]], [[4, 5]], [[8, 9]]]
    assert [one["b"].tolist() for one in found] == [[1], [2], [3], [4]]
    assert found[0]["b"].dtype == np.int32


def test_many_are_thinned_out_from_first_to_last() -> None:
    count = 3 * MOST
    batch = {"a": np.repeat(np.arange(count)[:, None], 2, 1), "b": np.arange(count)}
    places = [int(one["b"][0]) for one in calibration_of(None, [batch])]
    assert len(set(places)) == MOST
    assert (places[0], places[-1]) == (0, count - 1)
    assert set(np.diff(places)) <= {2, 3, 4}


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        (None, "needs samples of its real inputs"),
        ([], "needs samples of its real inputs"),
        ([{"a": np.zeros((2, 2))}], "a sample has no input b: it has a"),
        ([{"a": np.zeros((2, 2)), "b": np.zeros(3)}], "batches of different lengths: a: 2, b: 3"),
        ([{"a": np.zeros((2, 3)), "b": np.zeros(2)}], r"the shape \[2, 3\]: the model takes"),
        ([{"a": np.full((2, 2), np.inf), "b": np.zeros(2)}], "a sample of a holds NaN or infinity"),
        ([{"a": np.zeros((0, 2)), "b": np.zeros(0)}], "no sample to take ranges from"),
    ],
)
def test_samples_that_do_not_fit_are_refused(samples: Value, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        calibration_of(None, samples)
