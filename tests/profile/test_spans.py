"""Stretches of time, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.profile.spans import Spans, cut, merged, own_times, per_step, run_lengths, shared_times

pairs = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=12)


def spans(*stretches: tuple[float, float]) -> Spans:
    begin, end = np.array(stretches, float).reshape(-1, 2).T
    return merged(begin, end)


def test_stretches_that_overlap_or_touch_become_one() -> None:
    found = spans((5, 6), (0, 2), (1, 3), (3, 4), (8, 8))
    assert found.begin_s.tolist() == [0, 5]
    assert found.end_s.tolist() == [4, 6]
    assert found.total_s == 5


@given(pairs)
def test_the_union_holds_what_any_stretch_holds(given_pairs: list[tuple[int, int]]) -> None:
    held = {at for begin, size in given_pairs for at in range(begin, begin + size)}
    assert spans(*((b, b + s) for b, s in given_pairs)).total_s == len(held)


def test_time_is_cut_wherever_something_begins_or_ends() -> None:
    edges = np.array([0.0, 10.0, 20.0])
    pieces = cut(edges, {"busy": spans((2, 4), (8, 12)), "waits": spans((3, 9), (30, 40))})
    assert pieces.begin_s.tolist() == [0, 2, 3, 4, 8, 9, 10, 12]
    assert pieces.end_s.tolist() == [2, 3, 4, 8, 9, 10, 12, 20]
    both = pieces.inside["busy"] & pieces.inside["waits"]
    assert per_step(pieces, both, edges).tolist() == [2, 0]  # 3 to 4 and 8 to 9
    assert per_step(pieces, pieces.inside["busy"], edges).tolist() == [4, 2]


@given(pairs, pairs)
def test_pieces_always_add_up(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    edges = np.array([0.0, 25.0, 60.0])
    kinds = {"a": spans(*((x, x + s) for x, s in a)), "b": spans(*((x, x + s) for x, s in b))}
    pieces = cut(edges, kinds)
    everything = np.ones(pieces.begin_s.size, bool)
    assert per_step(pieces, everything, edges).tolist() == [25, 35]


def test_a_run_is_as_long_as_its_unbroken_pieces() -> None:
    chosen = np.array([True, True, False, True])
    assert run_lengths(np.array([1.0, 2.0, 9.0, 4.0]), chosen).tolist() == [3, 3, 0, 4]
    assert run_lengths(np.zeros(0), np.zeros(0, bool)).tolist() == []


def test_own_time_is_without_what_lies_inside() -> None:
    # 0-10 holds 1-4 (which holds 2-3) and 5-9; 12-13 is alone
    begin, end = np.array([0.0, 1, 2, 5, 12]), np.array([10.0, 4, 3, 9, 13])
    assert own_times(begin, end).tolist() == pytest.approx([3, 2, 1, 4, 1])


def test_own_time_is_never_negative_where_events_cross() -> None:
    begin, end = np.array([0.0, 1, 2]), np.array([3.0, 5, 6])
    assert min(own_times(begin, end)) >= 0


def test_what_two_threads_do_at_once_is_shared_by_them() -> None:
    # 0-8 with 2-5 in it, beside 4-10: of 4 to 8 each has half
    first = np.array([0.0, 2.0]), np.array([8.0, 5.0])
    second = np.array([4.0]), np.array([10.0])
    (outer, inner), (beside,) = shared_times([first, second])
    assert (outer, inner, beside) == pytest.approx((2 + 1.5, 2 + 0.5, 0.5 + 1.5 + 2))


def test_nothing_is_shared_by_no_threads() -> None:
    empty = np.zeros(0), np.zeros(0)
    assert [each.size for each in shared_times([empty, empty])] == [0, 0]
    assert shared_times([]) == []


@given(st.lists(pairs, max_size=4))
def test_shared_times_add_up_to_the_union(threads: list[list[tuple[int, int]]]) -> None:
    lines = []
    for each in threads:
        ends_first = sorted(((b, b + s) for b, s in each), key=lambda one: (one[0], -one[1]))
        nested = [one for n, one in enumerate(ends_first)
                  if all(not p[0] <= one[0] < p[1] < one[1] for p in ends_first[:n])]  # fmt: skip
        begin, end = np.array(nested, float).reshape(-1, 2).T
        lines.append((begin, end))
    everything = [one for begin, end in lines for one in zip(begin, end, strict=True)]
    found = sum(each.sum() for each in shared_times(lines))
    assert found == pytest.approx(spans(*everything).total_s)
