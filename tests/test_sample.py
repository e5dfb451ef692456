"""A run takes a part of the long tests, of each file one at least, and another one takes others."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.sample import drawn, long_tests, seed_of

LONG = {"a.py::one": 10.0, "a.py::two": 30.0, "b.py::three": 50.0}
NAMES = ["a.py::short", "a.py::one[x]", "a.py::one[y]", "a.py::two", "b.py::three", "b.py::brief"]


@given(st.text(max_size=8), st.floats(0, 200))
def test_each_file_keeps_one_and_the_budget_holds_beside_them(seed: str, budget_s: float) -> None:
    lot = drawn(NAMES, LONG, seed, budget_s)
    assert lot.taken | lot.left == {"a.py::one[x]", "a.py::one[y]", "a.py::two", "b.py::three"}
    assert not lot.taken & lot.left
    assert "b.py::three" in lot.taken
    assert any(name.startswith("a.py") for name in lot.taken)
    seconds = {"a.py::one[x]": 5.0, "a.py::one[y]": 5.0, "a.py::two": 30.0, "b.py::three": 50.0}
    spent_s = sum(seconds[name] for name in lot.taken)
    # one of each file: 50 s and at most 30 s
    assert spent_s <= max(budget_s, 80.0)


def test_a_budget_for_all_takes_all_and_none_takes_one_of_each_file() -> None:
    assert not drawn(NAMES, LONG, "seed", 90.0).left
    assert len(drawn(NAMES, LONG, "seed", 0.0).taken) == 2


def test_commits_draw_different_samples() -> None:
    lots = {drawn(NAMES, LONG, str(seed), 0.0).taken for seed in range(20)}
    assert len(lots) == 3


def test_the_list_names_tests_that_there_are() -> None:
    root = Path(__file__).parents[1]
    for name in long_tests():
        file, _, function = name.partition("::")
        assert f"def {function.rpartition('::')[2]}(" in (root / file).read_text(), name


def test_outside_of_a_repository_the_seed_is_fixed(tmp_path: Path) -> None:
    assert seed_of(tmp_path) == "0"
