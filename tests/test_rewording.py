"""A sentence that says something else is written where it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.rewording import changed_texts, reworded

ROOT = Path(__file__).parents[1]


def test_the_texts_that_differ_are_found_inside_of_lists_and_tables() -> None:
    held = {"a": ["one", ("two",)], "b": 3, "c": "same"}
    now = {"a": ["one", ("zwei",)], "b": 4, "c": "same"}
    assert list(changed_texts(now, held)) == [("two", "zwei")]


def test_the_literal_of_the_assert_is_changed_not_that_of_another() -> None:
    source = 'assert one() == "It is so."\nassert two() == "It is so."\n'
    assert reworded(source, 2, "It is so.", "It's so.") == (
        'assert one() == "It is so."\nassert two() == "It\'s so."\n'
    )


def test_a_literal_in_a_table_of_the_file_is_changed_where_it_is_the_only_one() -> None:
    source = 'CASES = {"a": "It is so."}\nassert one() == CASES["a"]\n'
    assert '"Or so."' in reworded(source, 2, "It is so.", "Or so.")
    twice = source.replace("CASES = {", 'CASES = {"b": "It is so.", ')
    assert reworded(twice, 2, "It is so.", "Or so.") == twice


@given(st.text(max_size=300), st.text(max_size=300))
def test_what_is_written_is_read_as_what_was_said(held: str, now: str) -> None:
    source = f"assert one(\n    2) == {held!r}, 'ü'\n"
    changed = reworded(source, 1, held, now)
    code = {"one": lambda _: now}
    exec(compile(changed, "changed", "exec"), code)


def test_a_run_of_a_test_writes_it(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "rewording.py").write_text((ROOT / "tests" / "rewording.py").read_text())
    hook = (ROOT / "tests" / "conftest.py").read_text().split("def pytest_assertrepr_compare")[1]
    hook = hook.split("\n\n\n")[0]
    (tmp_path / "tests" / "conftest.py").write_text(
        "import os\nfrom tests.rewording import reword\n\n\ndef pytest_assertrepr_compare" + hook
    )
    test = tmp_path / "tests" / "test_it.py"
    test.write_text('def test_it():\n    assert " ".join(["Now", "so."]) == "Then so."\n')
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    environment = {**os.environ, "GOLDEN": "write"}
    for code in (1, 0):
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout
    assert '== "Now so."' in test.read_text()
