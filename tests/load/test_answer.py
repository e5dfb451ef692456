from __future__ import annotations

import json
from typing import Any

import pytest

from tfdyno.core.measure.load import ACCEPTED, WRONG_ANSWER
from tfdyno.core.measure.load_url import read_load_url
from tfdyno.load.answer import AnswerCheck
from tfdyno.load.requests import Body
from tfdyno.load.server import TensorFacts

V1 = read_load_url("http://h/v1/models/m")
V2 = read_load_url("http://h/v2/models/m")
Y = TensorFacts(name="y", dtype="float32", shape=(-1, 2))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"predictions": [[0.1, 0.2]]}', ACCEPTED),
        (b'{"predictions": [[0.1, 0.2], [0.1, 0.2]]}', WRONG_ANSWER),
        (b'{"predictions": [[0.1, 0.2, 0.3]]}', WRONG_ANSWER),
        (b'{"predictions": [0.1]}', WRONG_ANSWER),
        (b'{"error": "no"}', WRONG_ANSWER),
        (b"<html>", WRONG_ANSWER),
        (b"", WRONG_ANSWER),
    ],
)
def test_a_200_that_is_not_the_models_answer_is_found(body: bytes, code: int) -> None:
    check = AnswerCheck(V1, [Body(data=b"", rows=1)], [Y])
    assert check(0, 200, b'{"predictions": [[0.5, 0.5]]}') == ACCEPTED
    assert check(0, 200, body) == code
    assert check(0, 429, body) == 429


def test_a_v2_answer_is_checked_by_its_shapes() -> None:
    check = AnswerCheck(V2, [Body(data=b"", rows=2)], [Y])
    good: dict[str, Any] = {"outputs": [{"name": "y", "shape": [2, 2], "data": [0, 0, 0, 0]}]}
    assert check(0, 200, json.dumps(good).encode()) == ACCEPTED
    good["outputs"][0]["shape"] = [1, 4]
    assert check(0, 200, json.dumps(good).encode() + b" ,") == WRONG_ANSWER
