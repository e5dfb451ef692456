"""runtime/jax_data: every kind of data reaches all devices in the order of one process."""

from __future__ import annotations

import pytest
from tests.runtime.jaxes import looked


def test_a_batch_is_shared_along_the_axis_of_the_data() -> None:
    found = looked("data")
    assert (found["part"], found["type"], found["none"]) == ([6, 4], "float32", True)
    assert found["largest"] == 12


def test_a_last_batch_that_cannot_be_shared_is_computed_whole() -> None:
    assert looked("data")["last"] == [3, 4]


def test_the_first_batch_is_compared_and_has_to_be_shared() -> None:
    found = looked("data")
    assert found["compared"] == 1
    assert found["odd"].startswith("a batch of 3 cannot be shared by 2 replicas")
    assert found["text"].startswith("the data hold texts")


def test_steps_that_are_done_are_left_out_and_the_order_stays() -> None:
    whole, later = looked("data")["arrays"]
    assert [step for step, _ in whole[0]] == [0, 1, 2]
    assert later == [whole[0][2:], whole[1]]


def test_a_dataset_that_shuffles_goes_on_with_the_order_of_its_epoch() -> None:
    whole, later = looked("data")["dataset"]
    assert whole[0] != whole[1]
    assert later[0] == whole[1]


def test_a_generator_goes_on_where_it_stood() -> None:
    whole, later = looked("data")["generator"]
    assert [batch for turn in whole for _, batch in turn] == [[n, n] for n in range(6)]
    assert later[0] == whole[1]


@pytest.mark.parametrize("kind", ["python", "endless"])
def test_a_pydataset_is_read_again_up_to_the_order_of_its_epoch(kind: str) -> None:
    whole, later = looked("data")[kind]
    assert sorted(batch for _, batch in whole[0]) == [[n, n] for n in range(5)]
    assert whole[0] != whole[1]
    assert later[0] == whole[1]


def test_where_no_step_is_left_the_epoch_has_one_call_without_a_batch() -> None:
    whole = looked("data")["arrays"][0]
    assert looked("data")["none_left"] == [[[3, None]], whole[1]]
