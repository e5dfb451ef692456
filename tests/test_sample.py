"""A run takes a part of the long tests, and another one takes others."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.sample import drawn, long_tests, seed_of

LONG = {"a.py::one": 10.0, "a.py::two": 30.0, "b.py::three": 50.0}
NAMES = ["a.py::short", "a.py::one[x]", "a.py::one[y]", "a.py::two", "b.py::three", "b.py::brief"]


@given(st.text(max_size=8), st.floats(0, 200))
def test_the_budget_holds_and_what_still_fits_is_taken(seed: str, budget_s: float) -> None:
    lot = drawn(NAMES, LONG, seed, budget_s)
    seconds = {"a.py::one[x]": 5.0, "a.py::one[y]": 5.0, "a.py::two": 30.0, "b.py::three": 50.0}
    assert lot.taken | lot.left == set(seconds)
    assert not lot.taken & lot.left
    spent_s = sum(seconds[name] for name in lot.taken)
    assert spent_s <= budget_s
    assert all(spent_s + seconds[name] > budget_s for name in lot.left)


def test_a_budget_for_all_takes_all() -> None:
    assert not drawn(NAMES, LONG, "seed", 90.0).left


def test_commits_draw_different_samples() -> None:
    lots = {drawn(NAMES, LONG, str(seed), 50.0).taken for seed in range(20)}
    assert len(lots) == 2  # the one of 50 s, or the three others


def test_the_list_names_tests_that_there_are() -> None:
    root = Path(__file__).parents[1]
    for name in long_tests():
        file, _, function = name.partition("::")
        assert f"def {function.rpartition('::')[2]}(" in (root / file).read_text(), name


def test_outside_of_a_repository_the_seed_is_fixed(tmp_path: Path) -> None:
    assert seed_of(tmp_path) == "0"
