"""core/tuning: trials are found by number and counted by what became of them."""

from __future__ import annotations

import pytest

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.search_space import SearchSpace
from tfdyno.core.train.tuning import Trial, Tuning

TOLD = Tuning(
    reference="train.py",
    start=Recipe(),
    recipe=Recipe(),
    space=SearchSpace(choices={"batch_size": (32, 64)}),
    trials=(
        Trial(number=0, recipe=Recipe(), status="measured", ran=True, samples_per_s=10.0),
        Trial(number=3, recipe=Recipe(batch_size=64), status="pruned", ran=True),
        Trial(number=4, recipe=Recipe(batch_size=64), status="same", same_as=3),
    ),
    best=0,
    confidence_ratio=0.99,
)


def test_a_trial_is_found_by_its_number() -> None:
    assert TOLD.trial(3).recipe.batch_size == 64
    with pytest.raises(StopIteration):
        TOLD.trial(2)


def test_each_end_is_counted() -> None:
    assert TOLD.counts() == {"measured": 1, "pruned": 1, "same": 1}


def test_only_what_ran_to_its_end_is_judged() -> None:
    assert [one.is_judged for one in TOLD.trials] == [True, False, False]


def test_a_tuning_survives_json() -> None:
    assert from_json(to_json(TOLD), Tuning) == TOLD
