"""core/doctor/move: one place that stops or cannot be told outweighs all that moves."""

from __future__ import annotations

import pytest

from tfdyno.core.doctor.move import Effect, Obstacle, move_of


def place(effect: Effect, *, is_safe: bool = False, line: int = 1) -> Obstacle:
    return Obstacle(
        cause="move.operation", effect=effect, file="a.py", source=f"a.py:{line}", text="x",
        name="tf.x", instead="", is_safe=is_safe,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("places", "answer"),
    [
        ((), "moves"),
        ((place("speed"), place("results")), "moves"),
        ((place("stops", is_safe=True), place("speed")), "after_migrate"),
        ((place("stops", is_safe=True), place("stops")), "rewrite"),
        ((place("unknown"),), "unknown"),
        ((place("unknown"), place("stops", is_safe=True)), "unknown"),
        ((place("unknown"), place("stops")), "rewrite"),
    ],
)
def test_the_answer_is_that_of_the_worst_place(places: tuple[Obstacle, ...], answer: str) -> None:
    assert move_of("a.py", "jax", places).answer == answer


def test_what_is_left_to_a_person_is_what_stops_and_is_not_safe() -> None:
    places = (place("stops", is_safe=True), place("stops", line=4), place("unknown", line=5))
    assert [one.source for one in move_of("a.py", "jax", places).by_hand] == ["a.py:4"]
