from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.load_url import read_load_url
from tfdyno.load.requests import given_bodies, made_bodies
from tfdyno.load.server import TensorFacts

if TYPE_CHECKING:
    from pathlib import Path

V1 = read_load_url("http://h/v1/models/m")
V2 = read_load_url("http://h/v2/models/m")
X = TensorFacts(name="x", dtype="float32", shape=(-1, 2, 3))
TOKENS = TensorFacts(name="tokens", dtype="int32", shape=(-1, 4))


def test_made_requests_fit_the_metadata_and_differ() -> None:
    bodies = made_bodies(V1, [X], rows=2, seed=0)
    read = [json.loads(one.data)["instances"] for one in bodies]
    assert np.array(read).shape == (64, 2, 2, 3)
    assert len({one.data for one in bodies}) == 64
    assert bodies == made_bodies(V1, [X], rows=2, seed=0)


def test_several_inputs_go_by_name() -> None:
    instance = json.loads(made_bodies(V1, [X, TOKENS], rows=1, seed=0)[0].data)["instances"][0]
    assert set(instance) == {"x", "tokens"}
    assert set(instance["tokens"]) <= {0, 1}


def test_the_v2_route_gets_flat_tensors() -> None:
    tensor = json.loads(made_bodies(V2, [X], rows=2, seed=0)[0].data)["inputs"][0]
    assert (tensor["name"], tensor["datatype"], tensor["shape"]) == ("x", "FP32", [2, 2, 3])
    assert len(tensor["data"]) == 12


@pytest.mark.parametrize(
    "one",
    [
        TensorFacts(name="x", dtype="float32", shape=(-1, -1)),
        TensorFacts(name="x", dtype="string", shape=(-1,)),
    ],
)
def test_what_cannot_be_made_up_asks_for_data(one: TensorFacts) -> None:
    with pytest.raises(UsageError, match="--data"):
        made_bodies(V1, [one], rows=1, seed=0)


def test_rows_of_a_file_are_taken_in_turns(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, x=np.arange(18, dtype=np.float64).reshape(3, 2, 3))
    bodies = given_bodies(V1, [X], path, rows=2)
    firsts = [[row[0][0] for row in json.loads(one.data)["instances"]] for one in bodies]
    assert firsts == [[0.0, 6.0], [12.0, 0.0]]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"z": np.zeros((1, 2, 3))}, "the model takes x"),
        ({"x": np.zeros((1, 3, 3))}, "the model takes x float32"),
        ({"x": np.zeros((0, 2, 3))}, "rows"),
        ({"x": np.full((1, 2, 3), "a")}, "the model takes float32"),
        ({"x": np.array([object()])}, "plain arrays"),
    ],
)
def test_data_that_does_not_fit_is_refused(
    arrays: dict[str, np.ndarray], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=words):
        given_bodies(V1, [X], path, rows=1)


def test_bodies_of_a_json_file_go_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('[{"instances": [[1], [2]]}, {"inputs": {"x": [[3]]}}]')
    assert [one.rows for one in given_bodies(V1, [], path, rows=1)] == [2, 0]
    path.write_text('{"rows": []}')
    with pytest.raises(UsageError, match="instances or inputs"):
        given_bodies(V1, [], path, rows=1)
