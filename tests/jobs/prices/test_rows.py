from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.price_server import skypilot_list, zipped

from tfdyno.catalog.price_sources import PriceList
from tfdyno.jobs.prices import gpuhunt, live, skypilot
from tfdyno.jobs.prices.fetch import SourceError
from tfdyno.jobs.prices.rows import number, read_csv


def test_a_list_is_read_by_its_header_with_or_without_a_byte_order_mark() -> None:
    rows = read_csv('\ufeffa,b\r\n1,"x\ny"\r\n'.encode(), ("b",))
    assert rows == [{"a": "1", "b": "x\ny"}]


def test_lines_of_another_length_are_left_out() -> None:
    assert read_csv(b"a,b\n1\n1,2,3\n1,2\n", ("a", "b")) == [{"a": "1", "b": "2"}]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<!DOCTYPE html><html>down</html>", "a web page or a message came in place of a list"),
        (b'{"message": "rate limit"}', "a web page or a message"),
        (b"", "has no column price"),
        (b"a,b\n1,2\n", "has no column price"),
        (b"price\n\xff\xfe\n", "is damaged"),
        (b'price\n"never closed\n', "is damaged"),
        (b"price,Currency\n1,USD\n2,EUR\n", "its prices are in EUR, not in USD"),
    ],
)
def test_what_is_no_list_is_told(body: bytes, why: str) -> None:
    with pytest.raises(SourceError, match=why):
        read_csv(body, ("price",))


def test_numbers_are_finite_and_an_empty_cell_is_none() -> None:
    assert (number(""), number("1.5")) == (0.0, 1.5)
    for text in ("nan", "inf", "-1", "€ 3", "3,5"):
        with pytest.raises(ValueError, match=re.escape(text)):
            number(text)


LINES = st.lists(st.text(st.characters(codec="utf-8"), max_size=40), max_size=8)
CELLS = st.lists(st.sampled_from(["", "A100", "8", "-1", "nan", "{", "'Gpus'", "\"", "1e400"]),
                 min_size=9, max_size=9)  # fmt: skip


@given(
    body=st.one_of(
        st.binary(max_size=300),
        LINES.map(lambda some: "\n".join(some).encode()),
        st.lists(CELLS, max_size=5).map(
            lambda rows: skypilot_list(*(",".join(cells) for cells in rows))
        ),
    )
)
def test_whatever_comes_is_a_list_or_a_reason(body: bytes) -> None:
    readers = (
        lambda: read_csv(body, ("a",)), lambda: skypilot.read_list(body, PriceList(provider="c")),
        lambda: gpuhunt.read_list(body, "c", most_bytes=10_000, skip_flags=()),
        lambda: gpuhunt.read_list(zipped("c.csv", body.decode(errors="replace")), "c",
                                  most_bytes=10_000, skip_flags=()),
        lambda: live.read_vast(body), lambda: live.read_lium(body),
    )  # fmt: skip
    for read in readers:
        with contextlib.suppress(SourceError):
            read()
