"""Texts as TOML writes them."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.toml_text import quoted

PLAIN = st.text(st.characters(exclude_categories=["Cs"]))


@given(PLAIN)
def test_what_is_written_is_read_again(text: str) -> None:
    assert tomllib.loads(f"a = {quoted(text)}") == {"a": text}


def test_it_is_as_a_person_writes_it() -> None:
    assert quoted('größe "x"') == '"größe \\"x\\""'
