from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.runtime.fronts import LINEAR, TEXT, signature

from tfdyno.serving.front.table import Refused
from tfdyno.serving.front.v2 import check_outputs, read_v2, v2_inputs

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value
    from tfdyno.core.messages.serve import SignatureFacts

X: dict[str, Any] = {"name": "x", "shape": [2, 3], "datatype": "FP32", "data": [1, 2, 3, 4, 5, 6]}


def read(tensor: dict[str, Any], binary: bytes = b"", facts: SignatureFacts = LINEAR) -> Value:
    head = json.dumps({"inputs": [tensor]}).encode()
    request = read_v2(head + binary, len(head) if binary else None)
    (array,) = v2_inputs(request, signature(facts)).values()
    return array.tolist()


def test_flat_and_nested_data_are_the_same() -> None:
    wanted = [[1, 2, 3], [4, 5, 6]]
    assert read(X) == wanted
    assert read({**X, "data": wanted}) == wanted


def test_strings_come_as_json_and_as_bytes() -> None:
    tensor = {"name": "s", "shape": [2, 1], "datatype": "BYTES"}
    assert read({**tensor, "data": ["a", "b"]}, facts=TEXT) == [[b"a"], [b"b"]]
    binary = b"\x01\x00\x00\x00a\x00\x00\x00\x00"
    sized = {**tensor, "parameters": {"binary_data_size": len(binary)}}
    assert read(sized, binary, TEXT) == [[b"a"], [b""]]


BYTES = {key: X[key] for key in ("name", "shape", "datatype")}


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        ({**X, "name": "z"}, "inputs must be x"),
        ({**X, "datatype": "FP64"}, "datatype FP64, not FP32"),
        ({**X, "shape": [2, -3]}, "no shape"),
        ({**X, "shape": [2, 2]}, "signature says [any, 3]"),
        ({**X, "shape": [10**15, 3]}, "shape"),
        ({**X, "data": [1, 2, 3]}, "x has the shape [3]; the signature says [6]"),
        ({**X, "data": [[1, 2, 3]]}, "the data has not the shape [2, 3]"),
        ({**X, "data": [1, 2, 3, 4, 5, "a"]}, 'x[5] is "a"'),
        (BYTES, "neither data nor binary_data_size"),
        ({**BYTES, "parameters": {"binary_data_size": 24}}, "goes beyond the body"),
        ({**BYTES, "parameters": {"binary_data_size": -4}}, "goes beyond the body"),
    ],
)
def test_what_does_not_fit_is_told(tensor: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused) as error:
        read(tensor)
    assert error.value.code == 400
    assert words in error.value.text


def test_bytes_must_be_as_many_as_the_shape_says() -> None:
    with pytest.raises(Refused, match="20 bytes are not"):
        read({**BYTES, "parameters": {"binary_data_size": 20}}, bytes(20))
    with pytest.raises(Refused, match="belong to no input"):
        read({**BYTES, "parameters": {"binary_data_size": 24}}, bytes(25))
    with pytest.raises(Refused, match="longer than the body"):
        read_v2(b"{}", 3)


def test_an_unknown_output_is_refused_before_anything_is_computed() -> None:
    request = read_v2(json.dumps({"inputs": [X], "outputs": [{"name": "z"}]}).encode(), None)
    with pytest.raises(Refused, match="no output 'z'; there is y"):
        check_outputs(request, signature(LINEAR))


def test_several_tensors_of_one_name_are_refused() -> None:
    request = read_v2(json.dumps({"inputs": [X, X]}).encode(), None)
    with pytest.raises(Refused, match="each once"):
        v2_inputs(request, signature(LINEAR))


def test_arrays_have_the_dtype_of_the_signature() -> None:
    request = read_v2(json.dumps({"inputs": [X]}).encode(), None)
    assert v2_inputs(request, signature(LINEAR))["x"].dtype == np.float32
