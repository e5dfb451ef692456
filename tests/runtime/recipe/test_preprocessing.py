"""Preprocessing layers are named, with where they run; XLA is refused where they stay inside."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.prepared import prepared

pytestmark = pytest.mark.tf


def whole(name: str) -> dict[str, Any]:
    return dict(prepared()["whole"][name])


def test_what_runs_in_the_pipeline_is_named() -> None:
    assert prepared()["sequential"]["sentences"] == [
        'TextVectorization "words" runs in the input pipeline on the CPU.'
    ]


def test_what_makes_much_more_bytes_stays_on_the_device() -> None:
    told = prepared()["features"]["sentences"]
    assert (
        'CategoryEncoding "one_hot" runs inside of the step: its output has 4 times the bytes of '
        "its input." in told
    )
    assert len(told) == 5


@pytest.mark.parametrize(("name", "sentences"), [
    ("subclassed", ['StringLookup "x" runs on the CPU inside of the step: its table is on the CPU, '
                    "and only the model's own code knows what comes before it."]),
    ("images", ['Rescaling "scale" runs inside of the step: its output has 4 times the bytes of '
                "its input.",
                'RandomFlip "flip" runs inside of the step: it draws random numbers for each step, '
                "whose order would change.",
                'RandomZoom "zoom" runs inside of the step: it draws random numbers for each step, '
                "whose order would change."]),
    ("middle", ['Discretization "bins" runs inside of the step: it does not stand at the inputs '
                "of the model."]),
    ("plain", []),
])  # fmt: skip
def test_what_stays_inside_of_the_step_is_named_with_the_reason(
    name: str, sentences: list[str]
) -> None:
    assert whole(name)["split"]
    assert whole(name)["told"] == sentences


def test_a_step_of_the_models_own_gets_the_data_as_they_come() -> None:
    assert whole("own_step")["split"]
    assert (
        "the model has a train_step of its own, which may use the data as they come"
        in (whole("own_step")["told"][0])
    )


def test_xla_is_refused_with_the_layer_that_is_in_the_way() -> None:
    assert whole("subclassed")["xla"] == (
        'StringLookup "x" runs inside of the step: its table is on the CPU, so XLA cannot compile '
        "the step; put it into dataset.map(...)."
    )
    assert whole("images")["xla"] == (
        'RandomZoom "zoom" runs inside of the step: XLA cannot compile it; put it into '
        "dataset.map(...)."
    )
    assert whole("own_step")["xla"] is not None
    assert whole("middle")["xla"] is None
    assert whole("plain")["xla"] is None
    assert set(prepared()["checked"].values()) == {None}


def test_with_remat_nothing_runs_in_front_of_the_step() -> None:
    found = prepared()["recomputed"]
    assert found["told"] == [
        'TextVectorization "words" runs on the CPU inside of the step: its table is on the CPU, '
        "and remat takes the model as a whole."
    ]
    assert found["xla"].startswith('TextVectorization "words" runs inside of the step: its table')


def test_statistics_are_computed_on_the_cpu() -> None:
    # CPU:1 stands for a card: where operations go unless they are told otherwise.
    found = prepared()["adapted"]
    assert found["plain"] == ["1", "1"]
    assert found["moved"][0] == "0"
    assert found["same"] == 0.0
    assert found["right"] < 1e-4
    assert found["restored"]
