from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.advice import GIB, estimate

from tfdyno.core.choose.estimate import HeldBuffer
from tfdyno.view.draw.figure_memory import live_figure, peak_of, sparkline, tensor_name, ticks_of

if TYPE_CHECKING:
    from tfdyno.core.choose.estimate import Estimate


def held(**changes: object) -> Estimate:
    buffers = (
        HeldBuffer(name="relu", layer="conv1", part="activations", dtype="f32", held_bytes=2 * GIB),
        HeldBuffer(name="output", layer="", part="activations", dtype="f32", held_bytes=GIB / 2),
    )
    curve = ((0.0, GIB), (0.25, 3 * GIB), (0.5, 4 * GIB), (1.0, GIB))
    return estimate(largest_buffers=buffers, live_curve_bytes=curve, **changes)


def test_the_sentence_has_start_peak_and_end() -> None:
    figure = live_figure(held())
    assert figure is not None
    assert figure.label == (
        "Curve of the memory alive over a step: 1 GiB at its start, 4 GiB at the peak after 50% "
        "of it, 1 GiB at its end."
    )


def test_the_table_names_layers_and_their_share_of_the_peak() -> None:
    figure = live_figure(held())
    assert figure is not None
    assert figure.table.rows == (
        ("conv1 (relu)", "activations", "2 GiB", "50%"),
        ("output", "activations", "512 MiB", "12%"),
    )


def test_the_drawing_says_where_the_peak_is_in_both_layouts() -> None:
    figure = live_figure(held())
    assert figure is not None
    for drawing in (figure.wide, figure.narrow):
        assert "4 GiB after 50% of the step" in drawing
        assert "#0a0b" not in drawing  # every colour is a variable of the page


def test_without_a_curve_there_is_no_figure() -> None:
    assert live_figure(estimate()) is None


@pytest.mark.parametrize(
    ("execution", "planner"),
    [
        ("xla", "XLA plans"),
        ("compiled-torch", "XLA would plan"),
        ("graph", "TensorFlow’s executor holds"),
        ("eager-torch", "XLA would plan"),
    ],
)
def test_the_caption_says_whose_plan_the_curve_is(execution: str, planner: str) -> None:
    figure = live_figure(held(execution=execution))
    assert figure is not None
    assert figure.caption == f"Tensors alive over the step, as {planner} them"


def test_the_line_of_text_keeps_the_peak() -> None:
    assert sparkline(held(), 60) == "▃▇█▃"
    assert sparkline(held(), 2) == "▇█"
    assert peak_of(held()) == (0.5, 4 * GIB)


def test_a_tensor_named_like_its_layer_is_named_once() -> None:
    one = HeldBuffer(name="conv1", layer="conv1", part="weights", dtype="f32", held_bytes=1.0)
    assert tensor_name(one) == "conv1"


@pytest.mark.parametrize(
    ("end_gib", "expected_gib"), [(5.8, (0, 2, 4)), (4.6, (0, 1, 2, 3, 4)), (60.0, (0, 20, 40, 60))]
)
def test_marks_of_the_axis_are_round(end_gib: float, expected_gib: tuple[float, ...]) -> None:
    assert ticks_of(end_gib * GIB) == tuple(value * GIB for value in expected_gib)


@given(st.floats(1.0, 1e15))
def test_the_axis_has_two_to_five_marks_within_it(end_bytes: float) -> None:
    marks = ticks_of(end_bytes)
    assert 2 <= len(marks) <= 5
    assert marks[0] == 0.0
    assert marks[-1] <= end_bytes
