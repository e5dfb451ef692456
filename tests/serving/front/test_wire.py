from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.fronts import LINEAR, PAIR, signature

from tfdyno.serving.front.table import TensorSpec
from tfdyno.serving.front.wire import decode, encode, error_text, strings_of, wire_bytes


def test_parts_follow_one_another_in_each_tensor() -> None:
    parts = [
        {"a": np.array([[1, 2]], "f4"), "b": np.array([[3]], "i4")},
        {"a": np.array([[4, 5]], "f4"), "b": np.array([[6]], "i4")},
    ]
    head, blobs = encode(parts, signature(PAIR))
    told = json.loads(head)["inputs"]
    assert [each["shape"] for each in told] == [[2, 2], [2, 1]]
    assert [each["parameters"]["binary_data_size"] for each in told] == [16, 8]
    assert blobs == [np.array([1, 2, 4, 5], "<f4").tobytes(), np.array([3, 6], "<i4").tobytes()]


def test_an_answer_is_read_whether_binary_or_json() -> None:
    y = np.array([[1, 2]], "f4")
    output = {"name": "y", "datatype": "FP32", "shape": [1, 2]}
    binary = json.dumps({"outputs": [{**output, "parameters": {"binary_data_size": 8}}]}).encode()
    plain = json.dumps({"outputs": [{**output, "data": [1, 2]}]}).encode()
    for body, end in ((binary + y.tobytes(), len(binary)), (plain, len(plain))):
        np.testing.assert_array_equal(decode(body, end, signature(LINEAR))["y"], y)


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_strings_come_back_as_they_went(items: list[bytes]) -> None:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    data = wire_bytes(array, TensorSpec(name="s", dtype="string", shape=(None,)))
    assert strings_of(data, (len(items),)).tolist() == items


@pytest.mark.parametrize("data", [b"\x01", b"\x05\x00\x00\x00abc", b"\x01\x00\x00\x00a" * 2])
def test_lengths_of_strings_that_do_not_add_up_are_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"cut off|strings for"):
        strings_of(data, (1,))


def test_a_reason_is_found_in_any_error() -> None:
    assert error_text(b'{"error":"x"}') == "x"
    assert error_text(b"oops") == "oops"
    assert error_text(b"") == "the model gave no reason"


CHAINED = """Failed to process the request(s) for model 'm_0_0', message: \
TritonModelException: Model execute error: Traceback (most recent call last):
  File "/tmp/s/t/model-store/m/1/model.py", line 492, in execute
    raise triton_responses_or_error
c_python_backend_utils.TritonModelException: Traceback (most recent call last):
  File "/srv/pytriton/proxy/inference.py", line 393, in _handle_requests
    async for responses in self._model_callable(requests):
{}

At:
  /tmp/s/t/model-store/m/1/model.py(501): execute
"""


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        ("ValueError: 7 is too large\nmore at /srv/secret", "ValueError: 7 is too large"),
        ("a.b.OddError: no", "OddError: no"),
        ("ValueError: " + "x" * 9999, "ValueError: " + "x" * 288),
    ],
)
def test_a_client_is_told_the_error_and_no_place_in_the_server(raised: str, told: str) -> None:
    body = json.dumps({"error": CHAINED.format(raised)}).encode()
    assert error_text(body) == told


def test_what_triton_itself_says_is_told_in_one_line() -> None:
    said = "Failed to process the request(s) for model 'm_0_0', message: out of memory\nmore"
    assert error_text(json.dumps({"error": said}).encode()) == "out of memory"
