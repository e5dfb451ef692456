from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tfdyno.model.choose.pareto import pareto_front

POINTS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=30)


def test_front_of_a_drawn_example() -> None:
    # hours, US$: (8, 6) is beaten by (7, 5), (1, 31) by (1, 30)
    assert pareto_front([(12, 4), (8, 6), (7, 5), (1, 31), (1, 30)]) == (4, 2, 0)


def test_of_equal_points_the_first_stays() -> None:
    assert pareto_front([(1, 1), (1, 1)]) == (0,)


def test_no_points_have_no_front() -> None:
    assert pareto_front([]) == ()


@given(points=POINTS)
def test_a_point_is_on_the_front_or_beaten_or_equal_to_one_on_it(
    points: list[tuple[int, int]],
) -> None:
    front = pareto_front(points)
    for index, (hours, usd) in enumerate(points):
        beaten = any(h <= hours and c <= usd and (h, c) != (hours, usd) for h, c in points)
        if index in front:
            assert not beaten
        else:
            assert beaten or any(points[other] == (hours, usd) for other in front)


@given(points=POINTS)
def test_along_the_front_more_hours_cost_less(points: list[tuple[int, int]]) -> None:
    front = [points[i] for i in pareto_front(points)]
    assert all(a[0] < b[0] and a[1] > b[1] for a, b in pairwise(front))
