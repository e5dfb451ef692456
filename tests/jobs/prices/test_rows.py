from __future__ import annotations

import re

import pytest

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
