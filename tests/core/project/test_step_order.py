from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.step_order import ordered, with_needed, with_resting


def test_free_steps_keep_the_order_of_the_file() -> None:
    assert ordered({"c": (), "a": (), "b": ()}) == ("c", "a", "b")


def test_what_a_step_needs_comes_first_and_the_rest_stays() -> None:
    needs = {"serve": ("train",), "train": ("data",), "look": (), "data": ()}
    assert ordered(needs) == ("look", "data", "train", "serve")


@pytest.mark.parametrize(
    ("needs", "circle"),
    [
        ({"a": ("b",), "b": ("a",)}, "a → b → a"),
        ({"a": ("a",)}, "a → a"),
        ({"x": ("a",), "a": ("b",), "b": ("c",), "c": ("a",), "z": ()}, "a → b → c → a"),
    ],
)
def test_a_circle_is_named(needs: dict[str, tuple[str, ...]], circle: str) -> None:
    with pytest.raises(UsageError, match=f"the steps {circle} need one another"):
        ordered(needs)


def test_what_a_step_rests_on_and_what_rests_on_it() -> None:
    needs = {"data": (), "train": ("data",), "bench": ("data",), "export": ("train",)}
    assert with_needed(("export",), needs) == {"export", "train", "data"}
    assert with_resting(("train",), needs) == {"train", "export"}
    assert with_resting((), needs) == frozenset()


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, tuple[str, ...]]:
    """Steps in any order of the file, without a circle."""
    names = [f"s{number}" for number in range(draw(st.integers(1, 9)))]
    rows = {
        name: tuple(draw(st.lists(st.sampled_from(names[:place]), unique=True))) if place else ()
        for place, name in enumerate(names)
    }
    return {name: rows[name] for name in draw(st.permutations(names))}


@given(graphs())
def test_every_step_runs_once_and_behind_what_it_needs(needs: dict[str, tuple[str, ...]]) -> None:
    found = ordered(needs)
    assert sorted(found) == sorted(needs)
    for place, name in enumerate(found):
        assert set(needs[name]) <= set(found[:place])


@given(graphs())
def test_a_step_never_waits_for_one_behind_it_in_the_file(
    needs: dict[str, tuple[str, ...]],
) -> None:
    found, places = ordered(needs), list(needs)
    for first, second in pairwise(found):
        if places.index(first) > places.index(second):
            assert first in with_needed((second,), needs)


@given(graphs(), st.data())
def test_with_resting_is_the_other_way_of_with_needed(
    needs: dict[str, tuple[str, ...]], data: st.DataObject
) -> None:
    one = data.draw(st.sampled_from(sorted(needs)))
    assert with_resting((one,), needs) == {
        other for other in needs if one in with_needed((other,), needs)
    }
