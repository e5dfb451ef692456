"""A kept trace holds while nothing changes that it was made from."""

from __future__ import annotations

import ast
import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.store.dependencies import MOST_READ_BYTES, code_of, dependencies, hold

PHOTOS = (Path(__file__).parents[1] / "data" / "scripts" / "photos.py").read_text()
LINES = PHOTOS.splitlines()
TREE = ast.parse(PHOTOS)
NUMBERS = [
    node for node in ast.walk(TREE)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float)
]  # fmt: skip
FUTURE_NS = 2**62
NAMES = [node for node in ast.walk(TREE) if isinstance(node, ast.Name)]


def replaced(node: ast.expr, text: str) -> bytes:
    """Return the script with other text in the place of a node of one line."""
    lines, row = PHOTOS.splitlines(), node.lineno - 1
    assert node.end_col_offset is not None
    lines[row] = lines[row][: node.col_offset] + text + lines[row][node.end_col_offset :]
    return "\n".join(lines).encode()


@given(st.lists(st.tuples(st.integers(0, len(LINES)), st.sampled_from(["", "  # a", "\t", "# é"]))))
def test_comments_and_blank_lines_are_no_code(added: list[tuple[int, str]]) -> None:
    lines = list(LINES)
    for place, text in added:
        lines.insert(min(place, len(lines)), text)
    changed = "\n".join(lines)
    inside = ast.dump(ast.parse(changed)) != ast.dump(TREE)  # a line within a docstring
    assert (code_of(changed.encode()) == code_of(PHOTOS.encode())) != inside


@given(st.sampled_from(NUMBERS), st.integers(0, 10**6))
def test_another_number_is_other_code(node: ast.Constant, number: int) -> None:
    same = type(node.value) is int and node.value == number
    assert (code_of(replaced(node, f" {number} ")) == code_of(PHOTOS.encode())) == same


@given(st.sampled_from(NAMES))
def test_another_name_is_other_code(node: ast.Name) -> None:
    assert code_of(replaced(node, f" {node.id}_ ")) != code_of(PHOTOS.encode())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(a,b)", "f( a,\n   b )  # why"),
        ("x = 'a' 'b'", 'x = "ab"'),
        ("a = 1; b = 2", "a = 1\n\nb = 2"),
        ("x = 1000", "x = 1_000"),
        ("f(lambda x: x)  # one", "# two\nf(lambda x: x)"),
    ],
)
def test_another_form_is_the_same_code(before: str, after: str) -> None:
    assert code_of(before.encode()) == code_of(after.encode()) != ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(a, b)", "f(b, a)"),
        ("import keras", "import tf_keras"),
        ("x = 1", "x = 1.0"),
        ("x = True", "x = 1"),
        ('"""usage: --width=8"""', '"""usage: --width=9"""'),  # docopt reads it
        ("f(lambda x: x, lambda y: y)", "f(lambda x: x,\n  lambda y: y)"),  # AutoGraph goes by line
        ("if a:\n  b()\nc()", "if a:\n  b()\n  c()"),
    ],
)
def test_another_meaning_is_other_code(before: str, after: str) -> None:
    assert code_of(before.encode()) != code_of(after.encode())


@pytest.mark.parametrize(
    "text",
    [
        "import inspect",
        "from inspect import getsource",
        "from importlib import import_module\nimport_module('linecache')",
        "width = sys._getframe().f_lineno",
        "seed = hash(f.__code__)",
        "if:",
        "x = '\0'",
        "(" * 5000,
    ],
)
def test_code_that_sees_its_own_text_or_cannot_be_read_counts_by_its_bytes(text: str) -> None:
    assert code_of(text.encode()) == ""


def noted(path: Path) -> dict[str, str]:
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest()}


def test_a_comment_leaves_a_module_as_it_is_and_a_number_does_not(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("WIDTH = 8\n")
    known = dependencies(noted(script), began_ns=FUTURE_NS)
    script.write_text("# eight\nWIDTH = 8\n")
    assert hold(known)
    script.write_text("WIDTH = 9\n")
    assert not hold(known)
    script.unlink()
    assert not hold(known)


def test_one_module_that_looks_at_text_makes_the_bytes_of_all_count(tmp_path: Path) -> None:
    script, other = tmp_path / "train.py", tmp_path / "other.py"
    script.write_text("WIDTH = 8\n")
    other.write_text("import inspect\n")
    known = dependencies(noted(script) | noted(other), began_ns=FUTURE_NS)
    assert hold(known)
    script.write_text("WIDTH = 8  # wide\n")
    assert not hold(known)


def test_where_the_trace_names_lines_the_bytes_count(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("WIDTH = 8\n")
    known = dependencies(noted(script), names_lines=True, began_ns=FUTURE_NS)
    script.write_text("\nWIDTH = 8\n")
    assert not hold(known)


def test_a_module_that_changed_while_it_was_traced_counts_by_the_bytes_that_were_traced(
    tmp_path: Path,
) -> None:
    script = tmp_path / "train.py"
    script.write_text("WIDTH = 8\n")
    before = noted(script)
    script.write_text("WIDTH = 9\n")
    assert not hold(dependencies(before, began_ns=FUTURE_NS))


def test_files_folders_and_variables_that_were_read_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, folder = tmp_path / "width.txt", tmp_path / "photos"
    data.write_text("8")
    folder.mkdir()
    monkeypatch.delenv("WIDTH_OF_A_TEST", raising=False)
    known = dependencies({}, [str(data), str(folder)], ["WIDTH_OF_A_TEST"], began_ns=FUTURE_NS)
    (folder / "__pycache__").mkdir()
    assert hold(known)
    (folder / "rose").mkdir()
    assert not hold(known)
    (folder / "rose").rmdir()
    data.write_text("9")
    assert not hold(known)
    data.write_text("8")
    assert hold(known)
    monkeypatch.setenv("WIDTH_OF_A_TEST", "")
    assert not hold(known)


def test_of_many_files_what_is_beyond_the_limit_counts_by_size_and_time(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.bin" for number in range(3)]
    for path in paths:
        with path.open("wb") as file:
            file.truncate(MOST_READ_BYTES // 2)
    known = dependencies({}, [*map(str, paths)], began_ns=FUTURE_NS)
    assert [fact.endswith(" ns") for fact in known.read.values()] == [False, False, True]
    assert hold(known)
    for path in paths[:2]:
        path.touch()
    assert hold(known)  # the same bytes
    os.utime(paths[2], ns=(1, 1))
    assert not hold(known)


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    data = tmp_path / "photos.bin"
    with data.open("wb") as file:
        file.truncate(MOST_READ_BYTES + 1)  # without a byte on the disk
    known = dependencies({}, [str(data)], began_ns=FUTURE_NS)
    assert known.read[str(data)].startswith(f"{MOST_READ_BYTES + 1} bytes")
    assert hold(known)
    with data.open("r+b") as file:
        file.truncate(MOST_READ_BYTES + 2)
    assert not hold(known)


def test_a_file_that_was_not_there_counts_when_it_comes(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    known = dependencies({}, [str(settings)], began_ns=FUTURE_NS)
    assert hold(known)
    settings.write_text("{}")
    assert not hold(known)


def test_a_file_that_changed_while_it_was_traced_makes_the_trace_stale(tmp_path: Path) -> None:
    data, folder = tmp_path / "width.txt", tmp_path / "photos"
    data.write_text("8")
    folder.mkdir()
    os.utime(data, ns=(500, 500))
    assert hold(dependencies({}, [str(data), str(folder)], began_ns=501))
    assert not hold(dependencies({}, [str(data), str(folder)], began_ns=500))
