from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.fronts import ALONE, LINEAR, PAIR, TEXT, signature, tensor

from tfdyno.serving.front.predict import listed, read_body, read_inputs, reply, short_decimals
from tfdyno.serving.front.table import Refused, TensorSpec

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value
    from tfdyno.core.messages.serve import SignatureFacts


def inputs(value: object, facts: SignatureFacts) -> dict[str, Any]:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    arrays = read_inputs(read_body(text), signature(facts))
    return {name: array.tolist() for name, array in arrays.items()}


def refused(value: object, facts: SignatureFacts) -> str:
    with pytest.raises(Refused) as error:
        inputs(value, facts)
    assert error.value.code == 400
    return error.value.text


def test_rows_and_columns_say_the_same() -> None:
    x = [[1, 2, 3], [4, 5, 6]]
    for body in (
        {"instances": x},
        {"instances": [{"x": x[0]}, {"x": x[1]}]},
        {"inputs": x},
        {"inputs": {"x": x}},
    ):
        assert inputs(body, LINEAR) == {"x": x}


def test_several_inputs_go_by_name_in_both_forms() -> None:
    wanted = {"a": [[1, 2], [3, 4]], "b": [[5], [6]]}
    rows = [{"a": [1, 2], "b": [5]}, {"b": [6], "a": [3, 4]}]
    assert inputs({"instances": rows}, PAIR) == wanted
    assert inputs({"inputs": wanted}, PAIR) == wanted


def test_an_object_with_b64_alone_is_a_string_not_a_name() -> None:
    assert inputs({"instances": [["a"], [{"b64": "Yg=="}]]}, TEXT) == {"s": [[b"a"], [b"b"]]}
    one = replace(TEXT, inputs=(tensor("s", "string", None),))
    assert inputs({"instances": [{"b64": "Yg=="}]}, one) == {"s": [b"b"]}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "JSON Parse error"),
        (b"[]", "JSON Parse error"),
        (b'{"instances":[NaN]}', "JSON Parse error"),
        (b'{"instances":[1e999]}', "JSON Parse error"),
        (b'{"instances":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'{"instances":[[1,2,3]]}x', "JSON Parse error"),
        ({}, "Give either"),
        ({"instances": [[1, 2, 3]], "inputs": [[1, 2, 3]]}, "Give either"),
        ({"instances": []}, "'instances' is empty"),
        ({"instances": 3}, "'instances' is no list"),
        ({"instances": [{"x": [1, 2, 3]}, {"z": 1}]}, "instances[1] misses x and has unknown z"),
        ({"instances": [{"x": [1, 2, 3]}, 3]}, "JSON Parse error"),
        ({"inputs": {"z": 1}}, "inputs misses x and has unknown z"),
        ({"instances": [[1, 2, 3]], "signature_name": 3}, "JSON Parse error"),
    ],
)
def test_a_body_that_says_nothing_sound_is_refused(body: object, words: str) -> None:
    assert words in refused(body, LINEAR)


def test_inputs_of_different_lengths_are_told() -> None:
    body = {"inputs": {"a": [[1, 2], [3, 4]], "b": [[5]]}}
    assert "different numbers of rows: a 2, b 1" in refused(body, PAIR)
    assert "several inputs" in refused({"instances": [1]}, PAIR)


def test_without_a_batch_the_whole_tensor_is_one_call() -> None:
    assert inputs({"inputs": [[1, 2, 3], [4, 5, 6]]}, ALONE) == {"x": [[1, 2, 3], [4, 5, 6]]}
    assert "the signature says [2, 3]" in refused({"inputs": [[1, 2, 3]]}, ALONE)


def test_a_reply_names_outputs_only_where_there_are_several() -> None:
    one, two = {"y": [[1.5], [2.5]]}, {"y": [1, 2], "z": [3, 4]}
    assert json.loads(reply(one, rows=True)) == {"predictions": [[1.5], [2.5]]}
    assert json.loads(reply(one, rows=False)) == {"outputs": [[1.5], [2.5]]}
    by_row = [{"y": 1, "z": 3}, {"y": 2, "z": 4}]
    assert json.loads(reply(two, rows=True)) == {"predictions": by_row}
    assert json.loads(reply(two, rows=False)) == {"outputs": two}


@pytest.mark.parametrize("other", [[3], [], 4])
def test_outputs_of_different_length_have_no_row_format(other: Value) -> None:
    with pytest.raises(Refused, match="column format"):
        reply({"y": [1, 2], "z": other}, rows=True)
    assert json.loads(reply({"y": [1, 2], "z": other}, rows=False))["outputs"]["z"] == other


def test_values_that_are_not_finite_are_written_as_tensorflow_serving_does() -> None:
    values = [float("nan"), float("inf"), -float("inf")]
    assert reply({"y": values}, rows=True, finite=False) == (
        b'{"predictions": [NaN, Infinity, -Infinity]}'
    )


@given(st.lists(st.floats(width=32), min_size=1, max_size=30))
def test_short_decimals_are_read_back_as_the_same_float32(values: list[float]) -> None:
    array = np.array(values, dtype=np.float32)
    np.testing.assert_array_equal(short_decimals(array).astype(np.float32), array)


def test_a_float32_is_written_with_the_digits_that_a_person_would() -> None:
    array = np.array([0.1, 1 / 3, 3, 0.25, -123456.7, 0], dtype=np.float32)
    assert msgspec.json.encode(
        listed(array, TensorSpec(name="y", dtype="float32", shape=(None,)))
    ) == (b"[0.1,0.33333334,3.0,0.25,-123456.7,0.0]")


def test_strings_that_are_no_text_and_outputs_called_bytes_are_base64() -> None:
    array = np.array([b"ab", b"\xff"], dtype=object)
    plain = TensorSpec(name="y", dtype="string", shape=(None,))
    encoded = TensorSpec(name="y_bytes", dtype="string", shape=(None,))
    assert listed(array, plain) == ["ab", {"b64": "/w=="}]
    assert listed(array, encoded) == [{"b64": "YWI="}, {"b64": "/w=="}]
