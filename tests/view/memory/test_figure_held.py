"""view/figure_held: the areas of a step's memory, the sentence and the numbers that equal it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.memories import held, memory_map

from tfdyno.view.memory.figure_held import alive_words, held_figure, held_name, shape_words

if TYPE_CHECKING:
    from tfdyno.core.choose.memory_map import HeldTensor


def test_the_sentence_names_parts_start_peak_and_end() -> None:
    assert held_figure(memory_map()).label == (
        "Areas of the memory alive over a step by what it is for (weights, gradients, optimizer, "
        "activations): 1.5 GiB at its start, 4 GiB at the peak after 50% of it, 1.2 GiB at its "
        "end."
    )


def test_both_drawings_mark_the_peak_and_their_colours_are_the_pages() -> None:
    figure = held_figure(memory_map())
    for drawing in (figure.wide, figure.narrow):
        assert "4 GiB after 50% of the step" in drawing
        assert "#0a0b" not in drawing
    assert [key.variable for key in figure.key] == ["c4", "c1"]


def test_the_table_has_every_tensor_with_its_life() -> None:
    rows = held_figure(memory_map()).table.rows
    assert rows == (
        ("conv1 (relu)", "activations", "64 x 112 x 112 x 64", "f32", "2 GiB", "50%", "10–50%"),
        ("conv1/kernel", "weights", "3 x 3 x 64 x 64", "f32", "1 GiB", "25%", "all of it"),
    )


@pytest.mark.parametrize(
    ("one", "name", "shape", "alive"),
    [
        (held(), "conv1 (relu)", "64 x 112 x 112 x 64", "10–50%"),
        (held(layer="", name="output", shape=()), "output", "scalar", "10–50%"),
        (held(first_share=0.0), "conv1 (relu)", "64 x 112 x 112 x 64", "0–50%"),
    ],
)
def test_a_tensor_in_words(one: HeldTensor, name: str, shape: str, alive: str) -> None:
    assert (held_name(one), shape_words(one), alive_words(one)) == (name, shape, alive)
