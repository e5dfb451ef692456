"""Plain values come back from strict JSON as they were; a changed byte is noticed."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.runtime.checkpoint.plain_json import (
    NotPlainError,
    from_plain,
    sealed,
    to_plain,
    unsealed,
)

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value
    from tfdyno.runtime.checkpoint.plain_json import Arrays

KEYS = st.text() | st.sampled_from(["$float", "$array", "$tuple", "$items", "$$", "crc32"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | KEYS
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.dictionaries(st.integers() | st.tuples(st.integers(), KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)


def same(first: Value, second: Value) -> bool:
    """Equal with NaN equal to itself, and of the same types."""
    return repr(first) == repr(second)


def there_and_back(value: object) -> Value:
    arrays: Arrays = {}
    content = {"value": to_plain(value, arrays, "value")}
    text = sealed(content)
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    return from_plain(unsealed(text)["value"], arrays)


@given(VALUES)
def test_plain_values_come_back_with_their_types(value: object) -> None:
    assert same(there_and_back(value), value)


def test_a_state_of_a_training_comes_back() -> None:
    best = [np.arange(6.0).reshape(2, 3), np.array(3, "int8")]
    state = {"best": np.float32(0.1), "wait": np.int64(3), "on": np.True_, "weights": best}
    back = there_and_back({**state, "losses": (math.nan, -math.inf)})
    assert back["best"] == np.float32(0.1)
    assert (type(back["best"]), type(back["wait"]), back["on"]) == (float, int, True)
    assert repr(back["losses"]) == "(nan, -inf)"
    assert there_and_back([ml_dtypes.bfloat16(0.5), ml_dtypes.int4(3)]) == [0.5, 3.0]
    for kept, value in zip(back["weights"], best, strict=True):
        np.testing.assert_array_equal(kept, value)
        assert kept.dtype == value.dtype


def test_arrays_are_copied() -> None:
    arrays: Arrays = {}
    value = np.zeros(3)
    to_plain([value], arrays, "extra")
    value += 1
    assert arrays["extra[0]"].sum() == 0


def test_what_is_not_plain_is_named_with_its_place() -> None:
    looped: list[Any] = []
    looped.append(looped)
    for value, said in (
        ({"a": [object()]}, r"^extra\.a\[0\] is a object$"),
        (np.array([object()]), "^extra is an array of Python objects$"),
        (looped, "nested too deeply$"),
        ({1, 2}, "^extra is a set$"),
    ):
        with pytest.raises(NotPlainError, match=said):
            to_plain(value, {}, "extra")


@given(st.dictionaries(st.text(max_size=5), LEAVES.filter(lambda v: v == v), max_size=3), st.data())
def test_any_changed_byte_is_noticed(content: dict[str, Any], data: st.DataObject) -> None:
    text = sealed({key: to_plain(value, {}, "x") for key, value in content.items()})
    place = data.draw(st.integers(0, len(text) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != text[place]))
    changed = text[:place] + bytes([byte]) + text[place + 1 :]
    try:
        read = unsealed(changed)
    except ValueError:
        return
    assert read == unsealed(text)  # as 1e5 and 1E5: another way to write the same
