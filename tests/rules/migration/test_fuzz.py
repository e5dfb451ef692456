"""No source, however damaged, makes the migration check raise."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rules.migration.code import KERAS_3
from tests.rules.migration.examples import EXAMPLES, NOT_PYTHON

from tfdyno.rules.migration.check import check_code

SOURCES = [text for pair in EXAMPLES.values() for text in pair]
NAMES = ["a.py", "setup.py", "n.ipynb", "requirements.txt", "pyproject.toml", "setup.cfg",
         "Dockerfile",
         "environment.yml", "Pipfile", "run.sh"]  # fmt: skip
TEXTS = SOURCES + [text for _, *pair in NOT_PYTHON.values() for text in pair]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Two pieces of code joined, cut, doubled, or with something put in between."""
    text = draw(st.sampled_from(TEXTS)) + "\n" + draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(text)))
        end = draw(st.integers(at, min(len(text), at + 30)))
        put = draw(
            st.sampled_from(
                [
                    "",
                    "(",
                    ")",
                    "\n",
                    "    ",
                    "\t",
                    ".",
                    "*",
                    "[",
                    "\\",
                    "\0",
                    "\ufeff",
                    "é",
                    "lambda ",
                    "= ",
                    "self.",
                    "if x:\n  ",
                    '"""',
                ]
            )
            | st.text(max_size=5)
        )
        text = text[:at] + put + draw(st.sampled_from(["", text[at:end]])) + text[end:]
    return text


@settings(max_examples=600, deadline=None)
@given(
    text=damaged(),
    name=st.sampled_from(NAMES),
    values=st.sampled_from([{}, KERAS_3, {"tensorflow": "2"}]),
)
def test_damaged_files_of_every_kind_never_raise(
    text: str, name: str, values: dict[str, str]
) -> None:
    matches, notes = check_code([name], lambda _: text, values)
    assert all(one.evidence and one.cause.startswith("code.") for one in matches)
    assert all(note.endswith(".") for note in notes)


@settings(max_examples=150, deadline=None)
@given(
    cells=st.lists(st.tuples(st.sampled_from(["code", "markdown", ""]), damaged()), max_size=4),
    cut=st.integers(0, 40),
)
def test_damaged_notebooks_never_raise(cells: list[tuple[str, str]], cut: int) -> None:
    text = json.dumps({"cells": [{"cell_type": kind, "source": source} for kind, source in cells]})
    check_code(["n.ipynb"], lambda _: text[: len(text) - cut], KERAS_3)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["cells", "worksheets", "cell_type", "source", "input", "code"]), inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(value=JSON)
def test_any_json_named_as_a_notebook_never_raises(value: object) -> None:
    check_code(["n.ipynb"], lambda _: json.dumps({"tensorflow": value, "cells": value}), KERAS_3)
