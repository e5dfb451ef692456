"""Arrays come in another order in each epoch, which depends on the seed and the epoch alone."""

from __future__ import annotations

import functools

import pytest
from tests.runtime.training_child import case

pytestmark = pytest.mark.tf
seen = functools.partial(case, "training_around", "order")


def test_each_epoch_has_an_order_of_its_own() -> None:
    first, second, third = seen()["ours"]
    assert first != second != third != first
    assert sorted(first) == sorted(second) == list(range(40))


def test_a_later_epoch_is_reached_without_the_earlier_ones() -> None:
    assert seen()["again"] == [seen()["ours"][2]]


def test_keras_draws_one_order_for_all_epochs_when_a_seed_is_set() -> None:
    first, second = seen()["keras"]
    assert first == second
    assert first != list(range(40))


def test_a_seed_that_the_users_code_has_set_holds() -> None:
    assert seen()["of_user"]
    assert seen()["unshuffled"]
    assert seen()["repeats"] == [True, False]


def test_a_drawn_seed_reorders_and_a_given_one_is_as_keras_has_it() -> None:
    found = case("training_around", "drawn_seed")
    assert found["as_keras"]
    assert found["anew"]
    assert found["notes"] == ["Keras gives arrays the same order in each epoch: a seed is set."]
    assert found["anew_notes"] == []
