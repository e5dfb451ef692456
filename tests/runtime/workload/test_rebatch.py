"""The data of a fit with another batch size."""

from __future__ import annotations

import pytest
from tests.runtime.loaded import facts

pytestmark = pytest.mark.tf
STAGE = "The last batch() of the dataset makes batches of another size."
ANEW = "The dataset's batches are cut anew (rebatch), which costs time on the host."


def test_a_last_batch_that_is_not_full_stays_where_the_dataset_keeps_it() -> None:
    kept = facts()["kept"]
    assert kept["open"] == [[20, 20, 10], STAGE]
    assert kept["whole"] == [[20, 20], STAGE]
    assert kept["mapped"] == [[20, 20, 10], ANEW]
    assert kept["mapped_whole"] == [[20, 20], ANEW]  # of the 48 that it gave before


def test_it_goes_where_only_whole_batches_are_wanted() -> None:
    found = facts()["dropped"]
    assert list(found) == ["open", "whole", "mapped", "mapped_whole"]
    assert [one[0] for one in found.values()] == [[20, 20]] * 4


def test_arrays_are_batched_by_fit_and_zero_changes_nothing() -> None:
    assert facts()["arrays"] == 20
    assert facts()["as_it_is"] == [16, 16, 16, 2]
    assert facts()["is_arrays"] == [True, False, False]
