from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.messages.wire import decode, encode
from tfdyno.core.recipe.recipe import InputOptions, Recipe

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    x: float
    y: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    name: str
    where: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    mode: Literal["train", "infer"] = "train"
    shape: tuple[int | None, ...] = ()
    pair: tuple[str, Point] = ("", Point(x=0.0))
    by_size: Mapping[int, Point] = field(default_factory=dict)
    rows: list[Point] = field(default_factory=list)
    one: Point | Place | None = None
    folder: Path | None = None
    rate: float | None = None
    free: Any = None


def sent(noun: Value) -> Value:
    return decode(json.loads(encode(noun)), type(noun))


points = st.builds(Point, x=st.floats(allow_nan=False), y=st.floats(allow_nan=False))


@given(
    st.builds(
        Everything,
        mode=st.sampled_from(("train", "infer")),
        shape=st.lists(st.none() | st.integers()).map(tuple),
        pair=st.tuples(st.text(), points),
        by_size=st.dictionaries(st.integers(), points),
        rows=st.lists(points),
        one=st.none() | points | st.builds(Place, name=st.text(), where=st.just(Path("a/b"))),
        folder=st.none() | st.just(Path("/tmp/x")),
        rate=st.none() | st.floats(allow_nan=False),
        free=st.none() | st.lists(st.integers()) | st.dictionaries(st.text(), st.booleans()),
    )
)
def test_a_noun_comes_back_as_it_was_sent(noun: Everything) -> None:
    assert sent(noun) == noun


def test_a_recipe_comes_back_with_its_nested_options() -> None:
    recipe = Recipe(precision="mixed_bfloat16", input=InputOptions(prefetch=3))
    assert sent(recipe) == recipe


def test_a_whole_number_for_a_float_is_one() -> None:
    made = decode({"x": 3}, Point)
    assert made.x == 3
    assert isinstance(made.x, float)


def test_whole_numbers_for_floats_are_so_in_what_holds_them() -> None:
    made = decode({"rate": 3, "pair": ["a", {"x": 1}]}, Everything)
    assert isinstance(made.rate, float)
    assert isinstance(made.pair[1].x, float)
    (first, _) = decode([1, 2.5], tuple[float, ...])
    assert isinstance(first, float)


def test_a_field_that_the_class_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="z"):
        decode({"x": 1.0, "z": 2.0}, Point)
    with pytest.raises(TypeError, match="z"):
        decode({"pair": ["a", {"z": 2.0}]}, Everything)
    with pytest.raises(TypeError, match="none of"):
        decode({"one": {"z": 2.0}}, Everything)


def test_a_field_without_a_default_is_needed() -> None:
    with pytest.raises(TypeError, match="x"):
        decode({"y": 1.0}, Point)


def test_what_has_no_json_is_refused_by_its_class() -> None:
    with pytest.raises(TypeError, match="object cannot be sent"):
        encode(Everything(free=object()))


def test_dictionaries_pass_as_they_are() -> None:
    assert decode({"a": [1, {"b": None}]}, dict) == {"a": [1, {"b": None}]}
