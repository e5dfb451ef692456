"""core/search_space: what is typed becomes values, values become recipes, nothing else is tuned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import Recipe, from_settings
from tfdyno.core.train.search_space import (
    TUNABLE,
    SearchSpace,
    Value,
    changes_of,
    read_space,
    read_values,
    recipe_at,
    typed_value,
)

SPACE = SearchSpace(choices={"batch_size": (32, 64, 128), "execution": ("graph", "xla")})
START = Recipe()


def test_values_are_read_in_the_type_of_their_setting_each_once() -> None:
    typed = ["batch_size=64,128,64", "input.cache=true,false", "input.prefetch=auto,4"]
    assert read_space(typed, START) == {
        "batch_size": (64, 128), "input.cache": (True, False), "input.prefetch": (-1, 4),
    }  # fmt: skip


def test_own_is_what_the_start_has() -> None:
    start = from_settings({"precision": "mixed_float16"})
    assert read_space(["precision=own"], start) == {"precision": ("mixed_float16",)}
    assert read_space(["precision=own"], START) == {"precision": ("",)}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("batchsize=64", "did you mean batch_size?"),
        ("ema=0.9,0.99", "ema is not tuned"),
        ("batch_size", "write key=a,b,c"),
        ("batch_size=", "write key=a,b,c"),
        ("batch_size=64,,32", "one of them is empty"),
        ("precision=float31,float32", "did you mean"),
        ("batch_size=-1", "give 0 or more"),
    ],
)
def test_what_cannot_be_tuned_is_one_sentence_with_the_nearest(typed: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_space([typed], START)
    assert said in str(caught.value)


def test_every_combination_is_there_once_the_start_first() -> None:
    found = list(SPACE.combinations())
    assert len(found) == SPACE.size == 6
    assert found[0] == {"batch_size": 32, "execution": "graph"}
    assert len({tuple(one.items()) for one in found}) == 6
    assert all(SPACE.holds(one) for one in found)
    assert not SPACE.holds({"batch_size": 32})
    assert not SPACE.holds({"batch_size": 33, "execution": "xla"})


def test_values_of_the_start_change_nothing() -> None:
    values: dict[str, Value] = {"batch_size": 32, "execution": "graph"}
    assert recipe_at(values, SPACE, START, update_samples=32) == START


def test_a_part_of_the_batch_is_accumulated_to_the_update_of_the_start() -> None:
    space = SearchSpace(choices={"batch_size": (128, 32, 48)})
    start = from_settings({"batch_size": "128"})
    part = recipe_at({"batch_size": 32}, space, start, update_samples=128)
    assert (part.batch_size, part.accumulation) == (32, 4)
    other = recipe_at({"batch_size": 48}, space, start, update_samples=128)
    assert (other.batch_size, other.accumulation) == (48, 1)


def test_accumulation_that_is_tuned_is_left_as_it_is() -> None:
    space = SearchSpace(choices={"batch_size": (128, 32), "accumulation": (1, 2)})
    start = from_settings({"batch_size": "128"})
    found = recipe_at({"batch_size": 32, "accumulation": 2}, space, start, update_samples=128)
    assert found.accumulation == 2


def test_changes_are_as_they_are_typed() -> None:
    recipe = from_settings({"input.cache": "true", "input.deterministic": "false"})
    assert changes_of(recipe, START) == {"input.cache": "true", "input.deterministic": "false"}
    assert typed_value(None) == "none"


def test_a_setting_without_a_value_is_no_space() -> None:
    with pytest.raises(ValueError, match="has no value"):
        SearchSpace(choices={"batch_size": ()})


@given(st.lists(st.integers(1, 4096), min_size=1, max_size=6, unique=True), st.integers(1, 4096))
def test_an_update_is_never_a_part_too_many(sizes: list[int], update: int) -> None:
    space = SearchSpace(choices={"batch_size": (update, *(s for s in sizes if s != update))})
    start = from_settings({"batch_size": update})
    for values in space.combinations():
        recipe = recipe_at(values, space, start, update_samples=update)
        samples = recipe.batch_size * recipe.accumulation
        assert samples == update or recipe.accumulation == 1


def test_all_that_is_tuned_is_a_setting() -> None:
    read_space([f"{name}=own" for name in TUNABLE], START)


@pytest.mark.parametrize(
    ("batch_size", "accumulation"), [(32, 16), (64, 8), (128, 4), (256, 2), (512, 1), (1024, 1)]
)
def test_where_the_start_accumulates_every_batch_goes_into_its_update(
    batch_size: int, accumulation: int
) -> None:
    start = from_settings({"batch_size": "128", "accumulation": "4"})
    space = SearchSpace(choices={"batch_size": (128, 32, 64, 256, 512, 1024)})
    found = recipe_at({"batch_size": batch_size}, space, start, update_samples=512)
    assert found.accumulation == accumulation


def test_values_of_python_are_taken_as_they_are() -> None:
    assert read_values("precision", ["", "mixed_bfloat16"], START) == ("", "mixed_bfloat16")
    assert read_values("batch_size", [32, "64"], START) == (32, 64)
    assert read_values("input.deterministic", [None, False], START) == (None, False)
    with pytest.raises(UsageError, match="batch_size has no value"):
        read_values("batch_size", [], START)
