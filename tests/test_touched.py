"""A run takes those of the long tests that are next to what has changed."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.touched import (
    ROOT,
    Seconds,
    changed,
    chosen,
    code_texts,
    distances,
    long_tests,
    longest,
    seed_of,
    write_long,
)

if TYPE_CHECKING:
    from pathlib import Path

LONG = {"a.py::one": 10.0, "a.py::two": 30.0, "b.py::three": 50.0}
NAMES = ["a.py::short", "a.py::one[x]", "a.py::one[y]", "a.py::two", "b.py::three", "b.py::brief"]
SECONDS = {"a.py::one[x]": 5.0, "a.py::one[y]": 5.0, "a.py::two": 30.0, "b.py::three": 50.0}


@given(st.floats(0, 200), st.integers(0, 9), st.integers(0, 9))
def test_the_budget_holds_and_what_still_fits_is_taken(budget_s: float, a: int, b: int) -> None:
    found = chosen(NAMES, LONG, {"a.py": a, "b.py": b}, budget_s)
    assert found.taken | found.left == set(SECONDS)
    assert not found.taken & found.left
    spent_s = sum(SECONDS[name] for name in found.taken)
    assert spent_s <= budget_s
    assert all(spent_s + SECONDS[name] > budget_s for name in found.left)


def test_the_closest_come_first() -> None:
    assert chosen(NAMES, LONG, {"a.py": 2, "b.py": 1}, 50.0).taken == {"b.py::three"}
    assert chosen(NAMES, LONG, {"a.py": 1, "b.py": 2}, 50.0).left == {"b.py::three"}


def test_a_whole_file_may_be_long() -> None:
    long = {"a.py": 45.0, "b.py::three": 50.0}
    found = chosen(NAMES, long, {"a.py": 1}, 30.0)  # each of its four tests stands for 11.25 s
    assert found.taken == {"a.py::one[x]", "a.py::one[y]"}
    assert found.left == {"a.py::short", "a.py::two", "b.py::three"}


MEASURED = [
    Seconds("a.py::makes", 20.0, 19.0), Seconds("a.py::uses", 0.1, 0.0),
    Seconds("a.py::uses_too", 0.1, 0.0), Seconds("b.py::one[x]", 4.0, 0.0),
    Seconds("b.py::one[y]", 4.0, 0.0), Seconds("b.py::two", 7.0, 0.0),
    Seconds("b.py::three", 2.0, 2.0), Seconds("c.py::quick", 0.5, 0.5),
]  # fmt: skip


def test_the_longest_are_long_until_the_others_fit() -> None:
    assert longest(MEASURED, 1000.0) == {}
    assert longest(MEASURED, 18.0) == {"a.py": pytest.approx(20.2)}
    assert longest(MEASURED, 17.0) == {"a.py": pytest.approx(20.2), "b.py::one": 8.0}
    assert len(longest(MEASURED, 0.0)) == 5


def test_the_list_is_written_from_what_was_measured(tmp_path: Path) -> None:
    measured, path = tmp_path / "seconds.csv", tmp_path / "long.csv"
    measured.write_text('a.py::one[x],600,0\na.py::one[y],500,0\n"b.py::two[,]",400,0\n')
    assert write_long(measured, path) == 1
    assert long_tests(path) == {"a.py::one": 1100.0}


def test_what_no_change_touches_is_left() -> None:
    assert chosen(NAMES, LONG, {"b.py": 3}, 500.0).taken == {"b.py::three"}
    assert not chosen(NAMES, LONG, {}, 500.0).taken


TEXTS = {
    "src/tool/core/noun.py": "",
    "src/tool/jobs/work.py": "from tool.core.noun import Noun\n",
    "src/tool/jobs/start.py": "from tool.jobs import (\n    work,\n)\n",
    "src/tool/jobs/other.py": "from tool import aside\n",
    "src/tool/catalog/cards.py": 'TABLE = "cards.csv"\n',
    "tests/jobs/test_start.py": "from tool.jobs.start import start\n",
    "tests/runtime/test_child.py": 'run("tool.jobs.work", {})\n',
    "tests/runtime/plans.py": "import tool.core.noun\n",
    "tests/runtime/test_plans.py": "from tests.runtime.plans import plan\n",
    "tests/jobs/test_other.py": "from tool.jobs.other import other\n",
}


def test_imports_and_names_in_texts_lead_from_a_change_to_tests() -> None:
    assert distances(TEXTS, ["src/tool/core/noun.py"]) == {
        "src/tool/core/noun.py": 0,
        "src/tool/jobs/work.py": 1,
        "tests/runtime/plans.py": 1,
        "src/tool/jobs/start.py": 2,
        "tests/runtime/test_child.py": 2,
        "tests/runtime/test_plans.py": 2,
        "tests/jobs/test_start.py": 3,
    }


def test_data_is_named_by_its_file_name() -> None:
    found = distances(TEXTS, ["src/tool/catalog/data/cards.csv", "docs/page.md"])
    assert found["src/tool/catalog/cards.py"] == 1
    assert found.keys() - {"src/tool/catalog/cards.py"} == {
        "src/tool/catalog/data/cards.csv", "docs/page.md",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("file", "test"),
    [
        ("src/tfdyno/runtime/data/rounds.py", "tests/runtime/data/test_measure.py"),
        ("src/tfdyno/runtime/diagnose/clock.py", "tests/runtime/diagnose/test_loop.py"),
        ("src/tfdyno/core/recipe/recipe.py", "tests/jobs/train/test_train.py"),
        ("src/tfdyno/catalog/data/gpus.csv", "tests/jobs/choose/test_advise.py"),
        ("tests/runtime/looks.py", "tests/runtime/diagnose/test_fit.py"),
    ],
)
def test_a_change_of_this_project_reaches_the_tests_of_it(file: str, test: str) -> None:
    assert (ROOT / file).exists()
    assert test in distances(code_texts(), [file])


def test_the_list_names_tests_that_there_are() -> None:
    for name in long_tests():
        file, _, function = name.partition("::")
        text = (ROOT / file).read_text()
        assert not function or f"def {function.rpartition('::')[2]}(" in text, name


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, name: str) -> None:
    (folder / name).write_text("")
    git(folder, "add", name)
    git(folder, "commit", "-m", name)


def test_a_change_is_the_last_commit_on_main_and_all_commits_elsewhere(tmp_path: Path) -> None:
    git(tmp_path, "init", "-b", "main")
    assert changed(tmp_path) == frozenset()
    commit(tmp_path, "first")
    assert changed(tmp_path) == frozenset()
    commit(tmp_path, "second")
    assert changed(tmp_path) == {"second"}
    git(tmp_path, "checkout", "-b", "work")
    commit(tmp_path, "third")
    commit(tmp_path, "fourth")
    (tmp_path / "fifth").write_text("")
    (tmp_path / "first").write_text("again")
    assert changed(tmp_path) == {"first", "third", "fourth", "fifth"}


def test_outside_of_a_repository_nothing_has_changed_and_the_seed_is_fixed(tmp_path: Path) -> None:
    assert changed(tmp_path) == frozenset()
    assert seed_of(tmp_path) == "0"
