from __future__ import annotations

import numpy as np

from tfdyno.serving.front.answer import Answer, Outputs, put_together
from tfdyno.serving.front.table import TensorSpec

Y = TensorSpec(name="y", dtype="float32", shape=(None, 2))
OUTPUTS = Outputs(arrays={"y": np.arange(8, dtype=np.float32).reshape(4, 2)})


def test_each_request_sees_its_own_rows() -> None:
    answer = Answer(outputs=OUTPUTS, start=1, rows=2)
    assert answer.lists(Y) == [[2, 3], [4, 5]]
    assert answer.flat(Y) == [2, 3, 4, 5]
    assert answer.array("y").tolist() == [[2, 3], [4, 5]]
    assert Answer(outputs=OUTPUTS).flat(Y) == [0, 1, 2, 3, 4, 5, 6, 7]


def test_pieces_are_put_together_in_order() -> None:
    pieces = [Answer(outputs=OUTPUTS, start=2, rows=2), Answer(outputs=OUTPUTS, start=0, rows=1)]
    assert put_together(pieces).array("y").tolist() == [[4, 5], [6, 7], [0, 1]]


def test_floats_that_json_cannot_say_are_noticed() -> None:
    assert OUTPUTS.finite()
    assert not Outputs(arrays={"y": np.array([np.nan], dtype=np.float32)}).finite()
    assert Outputs(arrays={"s": np.array([b"a"], dtype=object)}).finite()
