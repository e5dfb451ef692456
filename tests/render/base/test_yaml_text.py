"""YAML of plain values."""

from __future__ import annotations

import yaml
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.render.base.yaml_text import without_none, yaml_text

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]))
VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_what_is_written_is_read_back(value: dict[str, object]) -> None:
    assert yaml.safe_load(yaml_text(value)) == value


def test_comments_stand_on_top_and_documents_are_parted() -> None:
    text = yaml_text({"a": 1}, {"b": None, "c": "no"}, head=("two",))
    assert text == "# two\na: 1\n---\nc: 'no'\n"


def test_entries_without_a_value_are_left_out() -> None:
    assert without_none({"a": None, "b": [{"c": None}], "d": 0}) == {"b": [{}], "d": 0}
